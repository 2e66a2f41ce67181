"""Figure 17: what the indexes over many rules save, and what merging states does, of Filter.

Three systems as in section 5.2.1: *MQO* is Cayuga; *no state merging* has the indexes, but rules
share no states; *no MQO* has FR alone, so an event asks every active state of every rule.
"""

from __future__ import annotations

import cayuga
import numpy as np
from baselines.merged import FILTER

from papers.cayuga.rules import counts_of, merged_rules
from papers.figures import Made, Panel, Points, Sentence, ratios

RULES = (2_500, 5_000, 10_000)
SYSTEMS = {
    "MQO": {"merges": True, "indexes": True},
    "no state merging": {"merges": False, "indexes": True},
    "no MQO": {"merges": False, "indexes": False},
}


def make(small: bool) -> Made:
    """The figure; small: up to 1,000 rules."""
    numbers, events = ((250, 500, 1_000), 900) if small else (RULES, 2_000)
    asked: dict[str, Points] = {}
    matches = set()
    for name, switches in SYSTEMS.items():
        points = []
        for n in numbers:
            rules = merged_rules(cayuga.rules_of(np.random.default_rng(n), n), FILTER)
            counts = counts_of(rules, events, **switches)
            points.append((n, counts.asked / events))
            matches.add((n, counts.matches))
        asked[name] = tuple(points)
    if len(matches) > len(numbers):
        raise RuntimeError(f"the systems find different matches: {sorted(matches)}")
    naive, unmerged = (ratios(asked[one], asked["MQO"]) for one in ("no MQO", "no state merging"))
    least = 40
    sentences = (
        Sentence(
            f"Without the indexes an event asks {least} times as many states or more",
            min(naive) >= least,
            ", ".join(f"{one:.0f} times" for one in naive),
        ),
        Sentence(
            "Without merging it asks at most twice as many: the index is most of the gain",
            max(unmerged) <= 2,
            ", ".join(f"{one:.2f} times" for one in unmerged),
        ),
    )
    ours = {"MQO beside no MQO": f"{min(naive):.0f} to {max(naive):.0f} times fewer states asked"}
    panel = Panel("states that an event asks", "rules", "states", asked, "xy")
    return Made((panel,), sentences, ours)
