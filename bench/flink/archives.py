"""The archives of Flink: fetched once, checked by sha256, kept beside those of Tailrace."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from service.archives import ensure, load
from service.archives.cache import cache_folder
from service.host.machine import MachineError

HERE = Path(__file__).parent


def flink_jars() -> tuple[Path, ...]:
    """Every jar that a Flink program with Kafka needs on its class path, in the order in which Flink lists them."""
    return (*_libraries(), *ensure(load(HERE / "connector.toml")))


def _libraries() -> tuple[Path, ...]:
    """The `lib` folder of the Flink wheel, unpacked; pip checks the wheel, so an unpacked folder is a right one."""
    lock = HERE / "wheel.lock"
    home = cache_folder() / "flink" / _version(lock)
    if not home.is_dir():
        work = home.with_name(f".{home.name}")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        _unpack(_download(lock, work), work)
        work.rename(home)
    return tuple(sorted(home.glob("*.jar")))


def _version(lock: Path) -> str:
    return lock.read_text().partition("==")[2].split()[0]


def _download(lock: Path, folder: Path) -> Path:
    print("fetching Flink (330 MB)", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-r", str(lock)]
    run = subprocess.run([*command, "-d", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode != 0:
        raise MachineError("Flink cannot be fetched", run.stdout.strip().splitlines()[-1])
    return next(folder.glob("*.whl"))


def _unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith("pyflink/lib/") and name.endswith(".jar"):
                with archive.open(name) as source, (folder / Path(name).name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    wheel.unlink()
