"""Fetching archives with the Ivy that ships inside pyspark, so that a machine needs no build tool.

Only what is asked for is fetched: no POM is read and nothing is resolved transitively, because the list is complete and
what it says is checked by sha256 afterwards. Where archives come from is Ivy's own default, the root URL in
TAILRACE_MAVEN_MIRROR, or whatever the Ivy settings file named by TAILRACE_IVY_SETTINGS says.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from service.archives.listing import Archive
from service.host.machine import MachineError, disk_full, find_java

MIRROR = "TAILRACE_MAVEN_MIRROR"
SETTINGS = "TAILRACE_IVY_SETTINGS"


def fetch(archives: Sequence[Archive], folder: Path) -> None:
    """Put `archives` into `folder`, which exists."""
    java = find_java()
    wanted = folder / "ivy.xml"
    wanted.write_text(_module(archives))
    command = [java, "-Xmx256m", f"-Duser.home={folder}", "-Divy.checksums=", "-jar", str(_ivy()), "-novalidate"]
    command += ["-settings", str(_settings(folder)), "-cache", str(folder / "cache"), "-ivy", str(wanted)]
    command += ["-types", "jar", "-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if run.returncode != 0:
        raise _complaint(run.stdout, folder)


def _module(archives: Sequence[Archive]) -> str:
    lines = [
        f"<dependency org={quoteattr(archive.group)} name={quoteattr(archive.artifact)}"
        f' rev={quoteattr(archive.version)} transitive="false" conf="default->*">'
        f'<artifact name={quoteattr(archive.artifact)} type="jar" ext="jar"/></dependency>'
        for archive in archives
    ]
    return (
        '<ivy-module version="2.0"><info organisation="tailrace" module="archives"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{''.join(lines)}</dependencies></ivy-module>"
    )


def _settings(folder: Path) -> Path:
    given = os.environ.get(SETTINGS)
    if given:
        if not Path(given).is_file():
            raise MachineError(f"{SETTINGS} names {given}, which is no file")
        return Path(given)
    mirror = os.environ.get(MIRROR)
    root = f" root={quoteattr(mirror)}" if mirror else ""
    path = folder / "ivysettings.xml"
    path.write_text(
        '<ivysettings><settings defaultResolver="archives"/><resolvers>'
        f'<ibiblio name="archives" m2compatible="true" usepoms="false"{root}/></resolvers></ivysettings>'
    )
    return path


def _ivy() -> Path:
    spark = find_spec("pyspark")
    found = sorted(Path(next(iter(spark.submodule_search_locations or ())), "jars").glob("ivy-*.jar")) if spark else []
    if not found:
        raise MachineError("pyspark, whose Ivy fetches the Java archives, is not installed", "run `make setup`")
    return found[-1]


def _complaint(output: str, folder: Path) -> MachineError:
    """Ivy's pages of output as one line."""
    if "No space left on device" in output or "Disk quota exceeded" in output:
        return disk_full(folder)
    missing = list(dict.fromkeys(re.findall(r":: (\S+#\S+;\S+): not found", output)))
    # To Ivy a host that cannot be reached is a missing archive too, but it tells why on the way.
    network = re.search(r"Host \S+ not found|\w*(?:Connect|NoRoute|Socket|SSL)\w*Exception", output)
    if network or not missing:
        causes = re.findall(r"((?:\w+\.)*\w+(?:Exception|Error): .+)", output)
        reason = network.group(0) if network else (causes or output.strip().splitlines() or ["Ivy said nothing"])[-1]
        return MachineError(
            f"the Java archives cannot be fetched ({reason})",
            f"check the network, or name a mirror in {MIRROR} or an Ivy settings file in {SETTINGS}",
        )
    shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    return MachineError(f"not found where Java archives are fetched from: {shown}", f"name another place in {MIRROR}")
