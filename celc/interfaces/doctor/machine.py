"""What is outside of Python's packages: the cache of machine code, Java, Spark's workers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from celc.interfaces.doctor.findings import Finding, ok, wrong

_OLDEST_JAVA = 17  # Spark 4.0
_SECONDS = 20.0  # for a program that only tells its version

_WORKER = "import sys, numba, numpy, pyarrow; print('%d.%d' % sys.version_info[:2])"


def cache() -> Finding:
    """The folder that keeps machine code, or why there is none."""
    from celc_runtime.jit.bootstrap import cache_root

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        root = cache_root()
    if root is None:
        why = str(said[0].message) if said else "it was said before in this process"
        return wrong(
            f"machine code is not kept, and each process compiles again: {why}",
            "export CELC_CACHE_DIR=…  # a folder that you alone can write to",
        )
    if not os.access(root, os.W_OK):
        return ok(f"machine code is read from {root}; this user cannot write there")
    size = sum(one.stat().st_size for one in root.rglob("*") if one.is_file())
    return ok(f"machine code is kept in {root} ({size / 2**20:.1f} MiB)")


def java() -> Iterator[Finding]:
    """The Java that Spark starts; nothing where there is no PySpark."""
    if find_spec("pyspark") is None:
        return
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    where = f"JAVA_HOME={home}" if home else "the PATH"
    line = f"export JAVA_HOME=…  # the folder of a Java {_OLDEST_JAVA} or newer"
    if program is None:
        yield wrong("there is no java on the PATH, and Spark needs one", line)
        return
    said = _said([program, "-version"])
    found = re.search(r'version "(\d+)(?:\.(\d+))?', said or "")
    if found is None:
        yield wrong(f"{where} has no Java that tells its version", line)
        return
    version = int(found[2] or 8) if found[1] == "1" else int(found[1])
    if version < _OLDEST_JAVA:
        yield wrong(f"{where} has Java {version}, and Spark 4 needs {_OLDEST_JAVA}", line)
    else:
        yield ok(f"Java {version} of {where}")


def workers() -> Iterator[Finding]:
    """The Python of Spark's workers on this machine; nothing where there is no PySpark."""
    if find_spec("pyspark") is None:
        return
    named = os.environ.get("PYSPARK_PYTHON")
    program = named or "python3"
    told = f"PYSPARK_PYTHON={named}" if named else "python3 on the PATH"
    line = f"export PYSPARK_PYTHON={sys.executable}"
    ours = "{}.{}".format(*sys.version_info[:2])
    said = _said([program, "-c", _WORKER])
    version = (said or "").strip().splitlines()[-1:] or [""]
    if re.fullmatch(r"\d+\.\d+", version[0]) is None:
        lacks = re.search(r"No module named '(\w+)'", said or "")
        why = f"has no {lacks[1]}" if lacks else "does not run"
        yield wrong(f"Spark's workers run {told}, which {why}", line)
    elif version[0] != ours:
        yield wrong(f"Spark's workers run {told}, a Python {version[0]}, and this is {ours}", line)
    else:
        yield ok(f"Spark's workers run {told}, a Python {version[0]}")
    home = os.environ.get("SPARK_HOME")
    if home:
        yield from _spark_home(Path(home))


def _spark_home(home: Path) -> Iterator[Finding]:
    import pyspark

    text = home / "python" / "pyspark" / "version.py"
    found = re.search(r'__version__.*"([^"]+)"', text.read_text()) if text.is_file() else None
    if found is None:
        yield wrong(f"SPARK_HOME={home} has no Spark with Python", "unset SPARK_HOME")
    elif found[1] != pyspark.__version__:
        yield wrong(
            f"SPARK_HOME={home} has Spark {found[1]}, and the package pyspark is "
            f"{pyspark.__version__}",
            "unset SPARK_HOME",
        )


def _said(command: list[str]) -> str | None:
    """All that a program says; None: it cannot be started, or takes too long."""
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout
