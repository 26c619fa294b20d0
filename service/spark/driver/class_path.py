"""The class path of driver and executors, and the place of the archive of the classes on it.

A JVM maps the archive if its class path begins as that with which the archive was made: ours and Spark's own.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from service.archives.class_archive import class_archive, mapped_classes
from service.host.machine import find_java

EXTRA = "extraClassPath"
"""The last word of Spark's settings for what comes before its own archives, of driver and executors."""

_NOT_NEEDED = ("spark-mllib_",)
"""Archives of Spark that are left out. A session searches all archives for extensions, and that of machine learning
builds its functions by Scala's reflection: an eighth of the processor time of a start."""

# A JVM that cannot use the archive prints a warning on standard output, which helps nobody.
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")


def spark_home() -> Path:
    """Return where PySpark is installed, found without importing it."""
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'pyspark'")
    return Path(found.submodule_search_locations[0]).resolve()


def class_path(home: Path, jars: Sequence[Path], settings: Mapping[str, str], clients: Sequence[Path] = ()) -> str:
    """Return the class path of the driver: our `jars`, those of `spark.driver.extraClassPath`, Spark's own, those of
    `spark.jars` and the `clients` of an object store; always in the same order."""
    last = [str(jar.resolve()) for jar in clients]
    ours = [str(jar.resolve()) for jar in jars]
    extra = [jar for jar in settings.get(f"spark.driver.{EXTRA}", "").split(os.pathsep) if jar not in last]
    own = sorted(str(jar) for jar in (home / "jars").glob("*.jar") if not jar.name.startswith(_NOT_NEEDED))
    given = [jar.removeprefix("file://") for jar in settings.get("spark.jars", "").split(",")]
    path = [*ours, *extra, *own, *given, *last]
    return os.pathsep.join(dict.fromkeys([jar for jar in path if jar and "://" not in jar]))


def of_executors(jars: Sequence[Path], clients: Sequence[Path], given: Mapping[str, str]) -> str:
    """Return the class path of executors that have the same files as the driver. Spark puts nothing before it, and its
    own archives once more behind it. `given` are the settings of the user."""
    extra = {f"spark.driver.{EXTRA}": given.get(f"spark.executor.{EXTRA}", "")}
    return class_path(spark_home(), jars, extra, clients)


def driver_classes(jars: Sequence[Path]) -> Path:
    """Return the place of the archive of classes, whether or not it exists; see the module `class_archive`."""
    path = class_path(spark_home(), jars, {}).split(os.pathsep)
    return class_archive("classes", Path(java()), map(Path, path), jars[0].parent)


def mapping(jars: Sequence[Path]) -> list[str]:
    """Return the options with which a JVM maps the archive of classes, if there is one, and says nothing about it."""
    return [*_QUIET, *(mapped_classes(driver_classes(jars)) if jars else [])]


def java() -> str:
    """Return the Java that runs: that of JAVA_HOME, or the first on the path that is new enough."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    return found or find_java()
