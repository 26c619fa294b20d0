"""What others have written of what is shipped: Python packages, Java archives, and what those hold of others.

A Java archive says by itself what it is, in `pom.properties` for each thing inside. The few of Spark's archives that
do not are named here.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from service.archives import ensure, load
from service.spark.driver.class_path import spark_home

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-build.lock")
LISTS = ("spark", "kafka", "s3a", "gs")

_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.M)
_POM = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")
_FILE = re.compile(r"(?P<artifact>.+?)-(?P<version>\d[^-]*(?:-\d+)?)(?:-.+)?")

GROUPS: Mapping[str, str] = {
    "RoaringBitmap": "org.roaringbitmap",
    "arpack_combined_all": "net.sourceforge.f2j",
    "breeze": "org.scalanlp",
    "cats-kernel": "org.typelevel",
    "algebra": "org.typelevel",
    "spire": "org.typelevel",
    "chill": "com.twitter",
    "derby": "org.apache.derby",
    "hadoop-client-runtime": "org.apache.hadoop",
    "hive-exec": "org.apache.hive",
    "ivy-": "org.apache.ivy",
    "jackson-module-scala": "com.fasterxml.jackson.module",
    "jdo-api": "javax.jdo",
    "jline": "org.jline",
    "json4s": "org.json4s",
    "jsr305": "com.google.code.findbugs",
    "jta-": "javax.transaction",
    "transaction-api": "javax.transaction",
    "libfb303": "org.apache.thrift",
    "libthrift": "org.apache.thrift",
    "netty-": "io.netty",
    "objenesis": "org.objenesis",
    "orc-": "org.apache.orc",
    "oro-": "oro",
    "rocksdbjni": "org.rocksdb",
    "scala-parallel-collections": "org.scala-lang.modules",
    "scala-parser-combinators": "org.scala-lang.modules",
    "scala-xml": "org.scala-lang.modules",
    "scala-": "org.scala-lang",
    "snappy-java": "org.xerial.snappy",
    "stax-api": "stax",
    "tink-": "com.google.crypto.tink",
    "xz-": "org.tukaani",
    "zstd-jni": "com.github.luben",
}
"""Maven groups of archives that do not tell theirs, by how their names begin; the first that fits counts."""


class Component(NamedTuple):
    """One thing that others have written, as vulnerability databases name it: `ecosystem` is PyPI or Maven."""

    ecosystem: str
    name: str
    version: str


Found = dict[Component, tuple[str, ...]]
"""Components, and in which files of ours or archives each of them is."""


def components() -> tuple[Found, tuple[str, ...]]:
    """All of them, and the archives that could not be named."""
    found: dict[Component, dict[str, None]] = {}
    unnamed: list[str] = []
    for lock in LOCKS:
        for component in locked((ROOT / lock).read_text()):
            found.setdefault(component, {})[lock] = None
    for name in LISTS:
        listing = load(name)
        for archive in listing.archives:
            own = Component("Maven", f"{archive.group}:{archive.artifact}", archive.version)
            found.setdefault(own, {})[f"service/archives/{name}.toml"] = None
        _look_inside(ensure(listing), found, [])
    _look_inside(sorted((spark_home() / "jars").glob("*.jar")), found, unnamed)
    return {each: tuple(where) for each, where in sorted(found.items())}, tuple(unnamed)


def locked(text: str) -> Iterator[Component]:
    """The packages of a lock file."""
    for name, version in _LOCKED.findall(text):
        yield Component("PyPI", name, version)


def held(path: Path) -> Iterator[Component]:
    """What an archive says that it is, and holds."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not _POM.fullmatch(name):
                continue
            lines = archive.read(name).decode(errors="replace").splitlines()
            said = {key.strip(): value.strip() for key, mark, value in (line.partition("=") for line in lines) if mark}
            if said.keys() >= {"groupId", "artifactId", "version"}:
                yield Component("Maven", f"{said['groupId']}:{said['artifactId']}", said["version"])


def named(stem: str) -> Component | None:
    """What an archive that does not say is, by its file's name."""
    match = _FILE.fullmatch(stem)
    group = next((group for start, group in GROUPS.items() if stem.startswith(start)), None)
    return Component("Maven", f"{group}:{match['artifact']}", match["version"]) if match and group else None


def _look_inside(jars: Iterable[Path], found: dict[Component, dict[str, None]], unnamed: list[str]) -> None:
    for jar in jars:
        inside = set(held(jar))
        if not any(jar.stem == f"{each.name.partition(':')[2]}-{each.version}" for each in inside):
            own = named(jar.stem)
            if own is None:
                unnamed.append(jar.name)
            else:
                inside.add(own)
        for component in inside:
            found.setdefault(component, {})[jar.name] = None
