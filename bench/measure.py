"""One run of one engine, watched from outside: the same clock, the same questions to the broker, for every engine."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from bench.cases import Case
from bench.engines import ENGINES, Launch, is_flink
from bench.feed import create_topics, feed
from bench.processes import Cpu, Peak, family
from bench.progress import Progress

_EVERY = 0.2
_MEMORY_EVERY = 2.0


@dataclass(frozen=True, slots=True)
class Sample:
    """At `seconds` after the start, `rows` had been committed as read."""

    seconds: float
    rows: int


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took; `error` says why there are no figures."""

    case: str
    engine: str
    rows: int
    seconds: float = 0.0
    first_commit: float = 0.0
    peak_memory: int = 0
    visible_end: int = 0
    samples: tuple[Sample, ...] = ()
    error: str = ""
    cpu: Mapping[str, float] = field(default_factory=dict)
    """CPU seconds by kind of process."""
    given_up: float = 0.0
    """Rows a second, from the start of the process on, of a run that was given up before its end."""

    @property
    def whole(self) -> float:
        """Rows per second from the start of the process to its end."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def compared(self) -> float:
        """The rate to compare it by: of a run that was given up, what it had read by then."""
        return self.middle or self.given_up

    @property
    def middle(self) -> float:
        """Rows per second between the first commits that have at least 20 and at least 90 percent of the rows.

        Both ends are commits that were seen, so nothing is interpolated; an engine that commits the rows in fewer than
        two steps after 20 percent has no such rate.
        """
        start, end = self._reached(0.2), self._reached(0.9)
        if start is None or end is None or end.rows == start.rows:
            return 0.0
        return (end.rows - start.rows) / (end.seconds - start.seconds)

    def _reached(self, part: float) -> Sample | None:
        return next((sample for sample in self.samples if sample.rows >= part * self.rows), None)


def measure(bootstrap: str, case: Case, engine: str, rows: int, patience: float) -> Run:
    """Run `case` on `engine` over `rows` generated rows, which are fed first where they are not there yet."""
    for topic in case.topics:
        feed(bootstrap, topic, rows)
    name = f"bench-{case.name}-{engine}-{uuid.uuid4().hex[:8]}"
    create_topics(bootstrap, [name])
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folder = Path(scratch)
        sql = folder / f"{case.name}.sql"
        text = case.for_flink() if is_flink(engine) else case
        sql.write_text(text.sql(bootstrap, name, name, case.names(rows) | case.written(folder)))
        partitions = max(topic.partitions for topic in case.topics)
        with closing(Progress(bootstrap, name, partitions)) as progress:
            return watch(progress, case, engine, rows, name, sql, patience)


def watch(progress: Progress, case: Case, engine: str, rows: int, name: str, sql: Path, patience: float) -> Run:
    """Run the engine on the file `sql` until it ends or `patience` (seconds) does, and ask `progress` meanwhile.

    `name` is that of its consumer group and of the topic that it writes. There are figures only if it read all rows.
    """
    launch = ENGINES[engine](sql, sql.parent)
    before = litter(launch)
    topics = [topic.name(rows) for topic in case.topics]
    log = sql.with_suffix(".log")
    samples: list[Sample] = []
    memory_due = 0.0
    with log.open("wb") as output:
        started = time.monotonic()
        process = subprocess.Popen(
            launch.command, env=launch.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        peak, cpu = Peak(process.pid, sql.parent), Cpu(process.pid, sql.parent)
        try:
            while process.poll() is None and time.monotonic() - started < patience:
                seconds = time.monotonic() - started
                read = progress.rows_read(topics)
                if read > (samples[-1].rows if samples else 0):
                    samples.append(Sample(time.monotonic() - started, read))
                if seconds >= memory_due:
                    peak.look()
                    cpu.look()
                    memory_due = seconds + _MEMORY_EVERY
                time.sleep(_EVERY)
            seconds = time.monotonic() - started
            given_up = process.poll() is None
        finally:
            end(process, sql.parent)
            sweep(launch, before)
    read = progress.rows_read(topics)
    if read > (samples[-1].rows if samples else 0):
        samples.append(Sample(seconds, read))
    fed = sum(topic.rows(rows) for topic in case.topics)
    if given_up and read < fed:
        error = f"given up after {seconds:.0f} s and {read:,} of {fed:,} rows"
        return Run(case.name, engine, rows, error=error, given_up=read / seconds)
    if error := last_words(process, log) if process.returncode else launch.left_out(read, fed):
        return Run(case.name, engine, rows, error=error)
    return Run(
        case.name,
        engine,
        rows,
        seconds,
        samples[0].seconds if samples else 0.0,
        peak.bytes,
        progress.visible_end(name),
        tuple(samples),
        cpu=cpu.by_kind(),
    )


def end(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Make sure that nothing is left of a run in `folder`: its own processes, whatever they started included."""
    members = family(process.pid, folder) if process.poll() is None else []
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            for member in members:
                subprocess.run(["kill", "-9", str(member)], stderr=subprocess.DEVNULL, check=False)
            process.wait(10)


def litter(launch: Launch) -> set[Path]:
    """What is there already of what the engine leaves outside the folder of its run."""
    folder = launch.litter
    return set(folder.iterdir()) if folder is not None and folder.exists() else set()


def sweep(launch: Launch, before: set[Path]) -> None:
    """Remove what the engine has left outside the folder of its run, but not what was there `before`."""
    for left in litter(launch) - before:
        shutil.rmtree(left, ignore_errors=True)


def last_words(process: subprocess.Popen[bytes], log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    complaint = next((line for line in lines if "Caused by" in line or "rror" in line), lines[-1] if lines else "")
    return f"ended with {process.returncode}: {complaint.strip()[:300]}"
