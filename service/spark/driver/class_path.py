"""The class path of driver and executors, and the place of the archive of the classes on it (class data sharing, CDS).

A JVM maps the archive if its class path begins as that with which the archive was made: our archives and Spark's own.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from service.archives.class_archive import class_archive, mapped_classes
from service.host.machine import find_java

_NOT_NEEDED = ("spark-mllib_",)
"""Archives of Spark that are left out. A session searches all archives for extensions, and that of machine learning
builds its functions by Scala's reflection: an eighth of the processor time of a start."""

# A JVM that cannot use the archive prints a warning on standard output, which helps nobody. `-Xlog:disable` would close
# the files as well that the variables of the environment name.
_ONLY_ERRORS = ("-Xlog:all=off:stdout", "-Xlog:all=error:stderr")


def spark_home() -> Path:
    """Return where PySpark is installed, found without importing it."""
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'pyspark'")
    return Path(found.submodule_search_locations[0]).resolve()


def class_path(home: Path, jars: Sequence[Path], settings: Mapping[str, str], clients: Sequence[Path] = ()) -> str:
    """Return the class path of the driver: our `jars`, those of `spark.driver.extraClassPath`, Spark's own, those of
    `spark.jars` and the `clients` of an object store; always in the same order."""
    given = [jar.removeprefix("file://") for jar in settings.get("spark.jars", "").split(",")]
    return _joined(home, jars, settings.get("spark.driver.extraClassPath", ""), [*given, *_names(clients)])


def executor_class_path(jars: Sequence[Path], clients: Sequence[Path], given: Mapping[str, str]) -> str:
    """Return the class path of executors that have the same files as the driver. Spark puts nothing before it, and its
    own archives once more behind it. `given` are the settings of the user."""
    return _joined(spark_home(), jars, given.get("spark.executor.extraClassPath", ""), _names(clients))


def _names(jars: Sequence[Path]) -> list[str]:
    return [str(jar.resolve()) for jar in jars]


def _joined(home: Path, jars: Sequence[Path], extra: str, last: Sequence[str]) -> str:
    own = sorted(str(jar) for jar in (home / "jars").glob("*.jar") if not jar.name.startswith(_NOT_NEEDED))
    path = [*_names(jars), *extra.split(os.pathsep), *own, *last]
    return os.pathsep.join(dict.fromkeys([jar for jar in path if jar and "://" not in jar]))


def archive_of_classes(jars: Sequence[Path]) -> Path:
    """Return the place of the archive of classes, whether or not it exists; see the module `class_archive`."""
    path = class_path(spark_home(), jars, {}).split(os.pathsep)
    return class_archive("classes", Path(java()), map(Path, path), jars[0].parent)


def archive_options(jars: Sequence[Path]) -> list[str]:
    """Return the options with which a JVM maps the archive of classes and logs nothing of its own but errors; none if
    there is no archive."""
    mapped = mapped_classes(archive_of_classes(jars)) if jars else []
    return [*_ONLY_ERRORS, *mapped] if mapped else []


def java() -> str:
    """Return the Java of JAVA_HOME, or the first on the path, without a start of it to ask for its version. Raises
    MachineError if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    return found or find_java()
