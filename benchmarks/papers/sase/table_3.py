"""Table 3: the number of runs in a window with n events for each of the l parts of a pattern.

The stream is A…AB…BC…C: first all A's, then all B's, then all C's. All runs of `SEQ(A, B)`,
`SEQ(A, B, C)` and `SEQ(A, B+, C)` are counted, and celc's nodes beside them. The paper's formulas:

- skip till next match: as many runs as first events
- skip till any match, without an iteration: 1 + n + n² + …
- skip till any match, with an iteration: (1 + n + …) · 2ⁿ
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from baselines.runs import ANY, NEXT, Events, Part, Pattern, found_by_runs
from streams import feeding, nodes_made

from papers.figures import Made, Panel, Points, Sentence, grows
from papers.sase.template import batch_of, compiled

_A, _B, _C = Part("A"), Part("B"), Part("C")
_FOREVER = 1 << 40  # a window that is longer than any stream here
PATTERNS = {
    "SEQ(A, B, C), next": Pattern((_A, _B, _C), _FOREVER, NEXT),
    "SEQ(A, B), any": Pattern((_A, _B), _FOREVER, ANY),
    "SEQ(A, B, C), any": Pattern((_A, _B, _C), _FOREVER, ANY),
    "SEQ(A, B+, C), any": Pattern((_A, Part("B", several=True), _C), _FOREVER, ANY),
}
OF_KLEENE = (2, 4, 6, 8)  # events of each type for B+, whose runs double with each B


def stream(each: int) -> Events:
    """`each` A's, then as many B's, then as many C's."""
    types = np.repeat(list("ABC"), each)
    count = len(types)
    return Events(types, np.zeros(count), np.arange(count), np.zeros(count, np.int64))


def make(small: bool) -> Made:
    """The table; small: up to 16 events of each type."""
    counts = (4, 8, 16) if small else (8, 16, 32, 64)
    runs: dict[str, Points] = {}
    for name, pattern in PATTERNS.items():
        sizes = OF_KLEENE if "+" in name else counts
        runs[name] = tuple((n, _runs(pattern, n, small)) for n in sizes)
    query = compiled(PATTERNS["SEQ(A, B+, C), any"])
    nodes = []
    for n in counts:
        run, _ = feeding(query, [batch_of(stream(n))], listed=False)
        nodes.append((n, nodes_made(run)))
    every = all(made == n + n * n + n**3 for n, made in runs["SEQ(A, B, C), any"])
    # Each A has a run for each set of B's. Each C clones those whose set is not empty.
    kleene = all(made == n * 2**n + n * n * (2**n - 1) for n, made in runs["SEQ(A, B+, C), any"])
    of_kleene = runs["SEQ(A, B+, C), any"]
    doubled = [later / one for (_, one), (_, later) in pairwise(of_kleene)]
    sentences = (
        Sentence(
            "Case 1: under skip till next match there are as many runs as first events",
            all(made == n for n, made in runs["SEQ(A, B, C), next"]),
            ", ".join(f"{made:,}" for _, made in runs["SEQ(A, B, C), next"]),
        ),
        Sentence(
            "Case 2: under skip till any match SEQ(A, B, C) has n + n² + n³ runs",
            every,
            ", ".join(f"{made:,}" for _, made in runs["SEQ(A, B, C), any"]),
        ),
        grows("Case 2: of SEQ(A, B) they grow", runs["SEQ(A, B), any"], 2),
        grows("Case 2: of SEQ(A, B, C) they grow", runs["SEQ(A, B, C), any"], 3),
        Sentence(
            "Case 3: with B+ there are n·2ⁿ + n²·(2ⁿ − 1): two more B's make four times as many",
            kleene and min(doubled) >= 4,
            ", ".join(f"{made:,}" for _, made in runs["SEQ(A, B+, C), any"]),
        ),
        grows("celc's nodes of SEQ(A, B+, C) grow", nodes, 1),
    )
    lines = runs | {"celc's nodes, SEQ(A, B+, C)": tuple(nodes)}
    panel = Panel("runs and nodes", "events of each type", "runs or nodes", lines, "xy")
    ours = {
        "case 1": "n runs",
        "case 2": "n + n² + … + nˡ runs; the formula's 1 is no run",
        "case 3": "n·2ⁿ + n²·(2ⁿ − 1) runs, of the formula's order",
    }
    return Made((panel,), sentences, ours)


def _runs(pattern: Pattern, each: int, small: bool) -> int:
    return found_by_runs(pattern, stream(each), by_numba=not small).counts.runs
