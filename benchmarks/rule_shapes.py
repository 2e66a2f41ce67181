"""Texts of forty shapes of rules over one log, for benchmarks of many rules.

Rules of one shape differ in users, hosts, ports, names, texts and bounds. Most rules name a user,
a host or an address, as rules of an alert do; some have conditions that many events satisfy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

DECLARATION = """CREATE STREAM Logs {
  EVENT Login { user: STRING, host: STRING, ip: STRING, ok: BOOLEAN, ts: TIMESTAMP },
  EVENT Process { user: STRING, host: STRING, name: STRING, elevated: BOOLEAN, ts: TIMESTAMP },
  EVENT Connection { user: STRING, host: STRING, ip: STRING, port: INT, bytes: LONG, ts: TIMESTAMP
  },
  EVENT File { user: STRING, host: STRING, path: STRING, action: STRING, ts: TIMESTAMP },
  EVENT Change { user: STRING, host: STRING, what: STRING, ts: TIMESTAMP }
}
"""
SHAPES = [
    tuple(map(str.strip, line.split("|")))
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines()
]
"""What SELECT shows, the pattern, its condition, and the clauses behind it, with `{user}` and other
words where rules of one shape differ."""


def texts(rules: int, mistakes: int = 0) -> dict[str, str]:
    """The texts of rules by name, shape after shape; the last ones have a mistake."""
    rng = np.random.default_rng(77)
    found = {}
    for number in range(rules):
        shown, pattern, condition, clauses = SHAPES[number % len(SHAPES)]
        values = {
            "user": f"user{rng.integers(9_997)}",
            "host": f"host{rng.integers(5_000)}",
            "ip": f"10.{rng.integers(20)}.{rng.integers(200)}",
            "port": int(rng.choice((22, 23, 25, 445, 3389, 5432, 8443, 61000))),
            "bytes": int(rng.integers(500_000, 990_000)),
            "large": int(rng.integers(999_000, 999_900)),
            "name": str(rng.choice(("chrome", "sudo", "cmd", "powershell", "psexec"))),
            "path": f"/home/{rng.integers(40)}/notes",
            "rare": str(rng.choice(("/etc/shadow", "/secret/plan", "/home/2/all.zip"))),
            "action": str(rng.choice(("create", "rename", "delete"))),
            "what": str(rng.choice(("task added", "service added", "user added", "audit off"))),
        }
        if number >= rules - mistakes:
            condition = "nobody." + condition.partition(".")[2]
        name = f"rule_{number:05d}"
        found[name] = (
            f"-- Rule {number}.\n{DECLARATION}\nQUERY {name}:\nSELECT {shown} FROM Logs\n"
            f"WHERE ({pattern})\nFILTER {condition.format(**values)}\n{clauses}\n"
        )
    return found


def write(folder: Path, rules: int, mistakes: int = 0) -> None:
    """A folder with a file for each rule."""
    folder.mkdir(parents=True)
    for name, text in texts(rules, mistakes).items():
        (folder / f"{name}.cel").write_text(text)
