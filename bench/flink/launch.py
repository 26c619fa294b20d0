"""Starting the small Java programs of this folder: compiled once, by the compiler inside the Java that runs them."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from bench.flink.archives import flink_jars
from service.archives.cache import cache_folder
from service.host.machine import MachineError, find_java

HERE = Path(__file__).parent
FACTORY = "META-INF/services/org.apache.flink.table.factories.Factory"
CONNECTORS = ("ReplayFactory", "SideInputFactory")
OPENED = ("java.base/java.lang", "java.base/java.util", "java.base/java.time")


def java_command(program: str, *arguments: str, heap: str = "1g", options: tuple[str, ...] = ()) -> list[str]:
    """The command that runs `program`, one of the .java files here, with Flink on its class path."""
    jars = os.pathsep.join(map(str, flink_jars()))
    command = [find_java(), f"-Xmx{heap}", *options, f"-Dlog4j.configurationFile={HERE / 'log4j2.properties'}"]
    for module in OPENED:
        command += ["--add-opens", f"{module}=ALL-UNNAMED"]
    return [*command, "-cp", f"{_compiled(jars)}{os.pathsep}{jars}", program, *arguments]


def run_java(program: str, *arguments: str) -> None:
    """Run `program` to its end and let it write to this terminal."""
    subprocess.run(java_command(program, *arguments, options=("-XX:+UseSerialGC",)), check=True)


def _compiled(jars: str) -> Path:
    """The folder of the compiled programs; the connectors among them are declared beside them, to be found."""
    sources = sorted(HERE.glob("*.java"))
    inputs = [*(source.read_bytes() for source in sources), *(name.encode() for name in CONNECTORS)]
    digest = hashlib.sha256(b"".join(inputs)).hexdigest()[:12]
    folder = cache_folder() / "flink" / "classes" / digest
    if not (folder / FACTORY).is_file():
        compiler = [find_java(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", jars, "-d", str(folder)]
        run = subprocess.run(
            [*compiler, *map(str, sources)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if run.returncode != 0:
            raise MachineError("the Flink programs of the bench do not compile (they need a JDK)", run.stdout.strip())
        (folder / FACTORY).parent.mkdir(parents=True)
        (folder / FACTORY).write_text("".join(f"{name}\n" for name in CONNECTORS))
    return folder
