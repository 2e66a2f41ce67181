"""Clusters of processes on one machine: Spark's local-cluster, its standalone master, Connect.

Executors work below a folder of the benchmark, each in a folder of its own, where it also keeps its
machine code; their Python has the installed packages and no celc. So each is what a machine of a
cluster is, but for the network.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import event_log
from processes import commands, end_tree
from spark_jobs import set_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTORS = 3
WORKER_MB = 1024
"""Memory of a worker, as Spark counts it: Python workers are beside it."""

EXECUTOR_MB = 768
"""Memory of the JVM of its executor."""

KINDS = ("local-cluster", "standalone", "connect")
_MASTER = f"local-cluster[{EXECUTORS},1,{WORKER_MB}]"
_PATIENCE = 120
"""Seconds in which a process has to come up, or a task to begin."""


class Cluster(NamedTuple):
    """A running cluster with a session.

    folder: where executors work and Spark writes its log.
    """

    spark: SparkSession
    folder: Path

    @property
    def log(self) -> Path:
        """The folder of the log of events."""
        return self.folder / "log"

    def kernels(self) -> dict[str, dict[str, int]]:
        """The machine code of each executor: names of files, with the times at which they came."""
        found: dict[str, dict[str, int]] = {}
        for place in ("spark", "worker-*"):
            for executor in self.folder.glob(f"{place}/work/app-*/[0-9]*"):
                made = found.setdefault(executor.name, {})
                # Over Connect each session has a folder of its own below that of the executor.
                for path in executor.rglob("celc-cache/*.kernel"):
                    made[path.name] = path.stat().st_mtime_ns
        return found


@contextmanager
def cluster(kind: str, folder: Path, partitions: int) -> Iterator[Cluster]:
    """A cluster with a session. kind: of KINDS. folder: is made. partitions: of a shuffle.

    One in the life of a process: PySpark has one JVM, and one kind of session.
    """
    (folder / "log").mkdir(parents=True)
    os.chdir(folder)  # a worker of the driver, which plans table functions, has its cache here
    os.environ |= {
        "SPARK_HOME": str(spark_home(folder)),
        "PYSPARK_PYTHON": str(_worker_python(folder)),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    set_environment()
    with ExitStack() as stack:
        if kind == "standalone":
            master = stack.enter_context(_masters(folder))
        else:
            master = _MASTER
        settings = _settings(folder, master, partitions)
        if kind == "connect":
            spark = stack.enter_context(_connected(folder, settings))
        else:
            spark = stack.enter_context(_classic(settings))
        yield Cluster(spark, folder)


def _settings(folder: Path, master: str, partitions: int) -> dict[str, str]:
    return {
        "spark.master": master,
        "spark.cores.max": str(EXECUTORS),
        "spark.executor.memory": f"{EXECUTOR_MB}m",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.locality.wait": "0",  # any executor may have any file
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.adaptive.coalescePartitions.enabled": "false",  # work for all executors
        "spark.executorEnv.CELC_CACHE_DIR": "celc-cache",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        **event_log.SETTINGS,
        "spark.eventLog.dir": f"file:{folder / 'log'}",
    }


def spark_home(folder: Path) -> Path:
    """A home of Spark's in this folder: executors of local-cluster work below it."""
    import pyspark

    home = folder / "spark"
    home.mkdir()
    for path in Path(pyspark.__path__[0]).iterdir():
        (home / path.name).symlink_to(path)
    return home


def _worker_python(folder: Path) -> Path:
    """A Python that sees the installed packages, but none that an editable install adds."""
    path = folder / "worker-python"
    packages = sysconfig.get_paths()["purelib"]
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" -S "$@"\n')
    path.chmod(0o755)
    return path


@contextmanager
def _classic(settings: dict[str, str]) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.config(map=dict(settings)).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")  # a killed executor is told of at length
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _masters(folder: Path) -> Iterator[str]:
    """A standalone master with its workers; gives the URL."""
    port = _free_port()
    master = f"spark://127.0.0.1:{port}"
    room = "org.apache.spark.deploy"
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    options = [*place, "--cores", "1", "--memory", f"{WORKER_MB}m"]
    with ExitStack() as stack:

        def start(name: str, *words: str) -> subprocess.Popen[bytes]:
            return stack.enter_context(_process(folder, name, ["spark-class", *words]))

        _listening(start("master", f"{room}.master.Master", *place, "--port", str(port)), port)
        for number in range(EXECUTORS):
            work = ["--work-dir", str(folder / f"worker-{number}" / "work")]
            start(f"worker {number}", f"{room}.worker.Worker", *options, *work, master)
        yield master


@contextmanager
def _connected(folder: Path, settings: dict[str, str]) -> Iterator[SparkSession]:
    """A session over Connect, of a server of its own."""
    port = _free_port()
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    words = ["spark-submit", "--class", name]
    for key, value in {**settings, "spark.connect.grpc.binding.port": str(port)}.items():
        words += ["--conf", f"{key}={value}"]
    with _process(folder, "connect", [*words, "spark-internal"], memory="1g") as server:
        _listening(server, port)
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def _process(
    folder: Path, name: str, words: list[str], memory: str = "256m"
) -> Iterator[subprocess.Popen[bytes]]:
    """A program of Spark's; what it says is in a file of its name."""
    program = Path(os.environ["SPARK_HOME"]) / "bin" / words[0]
    environment = os.environ | {"SPARK_DAEMON_MEMORY": memory, "SPARK_NO_DAEMONIZE": "1"}
    with (folder / f"{name}.txt").open("wb") as said:
        running = subprocess.Popen(
            [program, *words[1:]], stdout=said, stderr=subprocess.STDOUT, env=environment
        )
    try:
        yield running
    finally:
        end_tree(running.pid)
        running.wait()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _listening(program: subprocess.Popen[bytes], port: int) -> None:
    """Wait for a program that takes calls; raises RuntimeError where it ends."""

    def answers() -> bool:
        if program.poll() is not None:
            raise RuntimeError(f"{program.args!r} has ended with code {program.returncode}")
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", port)) == 0

    wait_for(answers, f"a program at port {port}")


def wait_for(holds: Callable[[], Any], what: str) -> None:
    """Wait until something holds; raises TimeoutError where it does not in two minutes."""
    end = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} did not come in {_PATIENCE} seconds")
        time.sleep(0.02)


# --- executors ------------------------------------------------------------------------------------

_BACKEND = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def executors() -> dict[str, int]:
    """The processes of executors below this one, by their numbers."""
    found = {}
    for pid, words in commands().items():
        # A shell in between would have the name in one word with others.
        if _BACKEND in words and "--executor-id" in words:
            found[words[words.index("--executor-id") + 1]] = pid
    return found


def in_the_middle(spark: SparkSession) -> bool:
    """Whether all executors of a classic session run a stage that reads what an earlier one wrote,
    in a stream behind its first micro-batch."""
    if any(stream.lastProgress is None for stream in spark.streams.active):
        return False
    tracker = spark.sparkContext.statusTracker()
    for number in tracker.getActiveJobsIds():
        job = tracker.getJobInfo(number)
        if job is not None and len(job.stageIds) > 1:
            stage = tracker.getStageInfo(max(job.stageIds))
            if stage is not None and stage.numActiveTasks >= EXECUTORS:
                return True
    return False


def killed_during(spark: SparkSession, job: Callable[[], Any]) -> Any:
    """What a job gives, in the middle of which an executor is killed; of a classic session.

    Raises RuntimeError where the job was over before.
    """
    found: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(job())
        except BaseException as error:
            failed.append(error)

    wait_for(lambda: len(executors()) == EXECUTORS, f"{EXECUTORS} executors")
    thread = threading.Thread(target=run)
    thread.start()
    wait_for(lambda: in_the_middle(spark) or not thread.is_alive(), "the middle of a job")
    if not thread.is_alive() and not failed:
        raise RuntimeError("the job was over before an executor could be killed")
    running = executors()
    os.kill(running[min(running, key=int)], signal.SIGKILL)
    thread.join()
    if failed:
        raise failed[0]
    return found[0]
