"""Bytes as text: how states are stored.

Spark sends bytes to Python as a text of characters from 0 to 255, which it makes character by
character and encodes as UTF-8. That takes some 20 ns for each byte, and Python takes 7 ns to undo
it. A text of ASCII characters is only copied. So bytes are stored in base64, which Python writes
and reads in 2 and 5 ns for each byte. Rejected: eight characters of seven bits for seven bytes. It
takes a seventh less room and half the time to read, but needs code of our own.
"""

import binascii

from celc_runtime.plan.errors import StateError


def text_of(data: bytes) -> str:
    """A text of ASCII characters that stands for bytes."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def bytes_of(text: str) -> bytes:
    """The bytes that a text stands for; raises StateError for a text that `text_of` cannot make."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        raise StateError("a stored text stands for no bytes") from None
