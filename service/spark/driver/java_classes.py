"""Our own Java classes, compiled once into an archive beside the archives that they need.

Code that runs for every Kafka record before Python gets it has to be Java: `java/tailrace/kafka` reads the partitions
of a task with one consumer. So has code that replaces a part of Spark: `java/tailrace/checkpoint` writes the files of
its logs, `java/tailrace/reports` collects the reports of tasks. `java/tailrace/memory` frees memory of an idle JVM.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from service.host.machine import find_java, writing_to

SOURCES = Path(__file__).parents[1] / "java"


def own_classes(archives: Sequence[Path], spark: Path) -> Path:
    """Return the archive of our classes, compiled with `archives` and those of the folder `spark`; make it if it is
    missing.

    Two processes may do so at the same time: the archive appears atomically. Raises MachineError, NotCompiled.
    """
    sources = sorted(SOURCES.rglob("*.java"))
    inputs = "\n".join([*(jar.name for jar in archives), *(source.read_text() for source in sources)])
    home = archives[0].parent
    target = home / f"tailrace-{hashlib.sha256(inputs.encode()).hexdigest()[:16]}.jar"
    if not target.exists():
        with writing_to(home):
            _make(target, sources, [*archives, *sorted(spark.glob("*.jar"))])
    return target


def _make(target: Path, sources: Sequence[Path], class_path: Sequence[Path]) -> None:
    from service.spark.internals.compiler import compile_java  # seldom needed

    print("compiling the Java classes of Tailrace (once; some seconds)", file=sys.stderr, flush=True)
    work = target.with_name(f".{target.stem}-{os.getpid()}")
    work.mkdir(parents=True)
    try:
        compiled = work / "classes"
        compiled.mkdir()
        compile_java(find_java(), sources, class_path, compiled)
        part = work / target.name
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for each in sorted(compiled.rglob("*.class")):
                archive.write(each, each.relative_to(compiled))
        part.replace(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
