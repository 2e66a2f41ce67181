"""Networks of IPv4 as regular expressions, because addresses are texts."""

from __future__ import annotations

import ipaddress
import re


def network_pattern(text: str) -> str | None:
    """A regular expression of the addresses of a network, such as `10.0.0.0/8`; None where it is no
    network of IPv4."""
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        return None
    octets = str(network.network_address).split(".")
    whole, bits = divmod(network.prefixlen, 8)
    parts = [re.escape(one) for one in octets[:whole]]
    if bits:
        first = int(octets[whole])
        parts.append(f"(?:{'|'.join(map(str, range(first, first + 2 ** (8 - bits))))})")
    parts += [r"[0-9]+"] * (4 - len(parts))
    return r"\.".join(parts)
