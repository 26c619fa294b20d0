"""A real schema registry as a process: Apicurio Registry from Maven Central, which speaks Confluent's protocol."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from service.host.machine import free_ports
from tests.tar_files import unpack

VERSION = "2.6.13.Final"
"""The last one that runs on Java 17."""

SHA256 = "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba"
MAVEN = "https://repo1.maven.org/maven2"
NAME = f"apicurio-registry-app-{VERSION}"
START = 120
"""Seconds that a start may take on a busy machine."""


def archive(cache: Path) -> Path:
    """The folder of the registry in `cache`, fetched once (142 MB) and checked."""
    home = cache / NAME
    if home.is_dir():
        return home
    cache.mkdir(parents=True, exist_ok=True)
    mirror = os.environ.get("TAILRACE_MAVEN_MIRROR") or MAVEN
    packed = cache / f"{NAME}.{os.getpid()}.tar.gz"
    unpacked = cache / f"{NAME}.{os.getpid()}"
    try:
        address = f"{mirror}/io/apicurio/apicurio-registry-app/{VERSION}/{NAME}-all.tar.gz"
        with urlopen(address, timeout=60) as source, packed.open("wb") as target:
            shutil.copyfileobj(source, target)
        with packed.open("rb") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256
        unpack(packed, unpacked)
        unpacked.rename(home)
    finally:
        packed.unlink(missing_ok=True)
        shutil.rmtree(unpacked, ignore_errors=True)
    return home


@contextmanager
def running(cache: Path, log: Path) -> Iterator[str]:
    """Run a registry that keeps its schemas in memory; the value is its URL."""
    (port,) = free_ports(1)
    java = [os.environ.get("JAVA_HOME", "") + "/bin/java" if os.environ.get("JAVA_HOME") else "java", "-Xmx256m"]
    command = [*java, f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1", "-jar", f"{NAME}-runner.jar"]
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=archive(cache), stdout=output, stderr=output)
        try:
            _wait(url, process, log)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        try:
            with urlopen(f"{url}/subjects", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.3)
    raise AssertionError(f"the registry did not start: {log.read_text(errors='replace')[-2000:]}")
