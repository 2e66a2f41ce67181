"""`celc doctor`: what a machine and a session of Spark have, and what to mend.

Each file looks at one thing and returns findings. Nothing here changes anything, and no session of
Spark is started.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celc.interfaces.doctor.findings import Finding


def of_machine() -> Iterator[Finding]:
    """What is found on this machine, for this Python."""
    from celc.interfaces.doctor import machine, packages, spark_settings

    yield from packages.packages()
    yield machine.cache()
    yield from machine.java()
    yield from machine.workers()
    yield from spark_settings.settings_of_file()


def of_session(spark: Any) -> Iterator[Finding]:
    """What is found in a session of Spark, which has its Java and its workers already."""
    from celc.interfaces.doctor import machine, packages, spark_settings

    yield from packages.packages()
    yield machine.cache()
    yield from spark_settings.settings_of_session(spark)
