"""Opening checkpoints by their place alone, without the pipeline that they are of."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from urllib.parse import urlparse

from service.checkpoint.address import SCHEMES, CheckpointAddress
from service.checkpoint.batch_log import OFFSETS
from service.checkpoint.copying import CopyRefused, done_batches
from service.checkpoint.files import Files, StateMissing
from service.inspection.kept_state import NotReadable
from service.settings import ConfigError, Settings, load

CACHE_BYTES = 256 << 20
"""Copies of blocks of an object store, while they are looked at."""


class NoCheckpoint(Exception):
    """There is none at the place that was named; the text says so."""


REFUSALS = (NoCheckpoint, CopyRefused, NotReadable, StateMissing)
"""What is printed as it is, with exit code 1."""


def load_settings() -> Settings | None:
    """Load the settings, for clients of object stores; their mistakes are printed, and None is returned."""
    try:
        return load()
    except ConfigError as error:
        print("\n".join(error.mistakes), file=sys.stderr)
        return None


@contextmanager
def opened(place: str, settings: Settings) -> Iterator[Files]:
    """Open the files of a folder or URL."""
    scheme = urlparse(place).scheme
    if scheme not in SCHEMES:
        raise NoCheckpoint(f"{place} is neither a folder nor a URL of s3a:// or gs://")
    conf = settings.spark.conf.items()
    hadoop = {name.removeprefix("spark.hadoop."): text for name, text in conf if name.startswith("spark.hadoop.fs.")}
    with TemporaryDirectory() as scratch:
        yield CheckpointAddress(place.rstrip("/"), hadoop, scratch, CACHE_BYTES).open()


def jobs_at(place: str, settings: Settings) -> list[str]:
    """Return the places of the checkpoints at `place`: itself, or one for each job, as in TAILRACE_CHECKPOINT. Raises
    NoCheckpoint."""
    place = place.rstrip("/")
    with opened(place, settings) as files:
        if files.names(OFFSETS):
            return [place]
        found = [f"{place}/{name}" for name in files.folders() if files.names(f"{name}/{OFFSETS}")]
    if not found:
        raise NoCheckpoint(
            f"there is no checkpoint at {place}\n  hint:   name the folder of a job, or that of all jobs"
        )
    return found


def one_at(place: str, settings: Settings) -> str:
    """Return the place of the one checkpoint at `place`. Raises NoCheckpoint, also where there are several."""
    found = jobs_at(place, settings)
    if len(found) > 1:
        raise NoCheckpoint(f"{place} has checkpoints of several jobs\n  hint:   name one of {', '.join(found)}")
    return found[0]


def newest(files: Files, wanted: int | None) -> int:
    """Return the batch that is meant: `wanted`, or the last that is done. Raises NoCheckpoint."""
    known = done_batches(files)
    if not known:
        raise NoCheckpoint("no batch of this checkpoint is done")
    if wanted is not None and wanted not in known:
        raise NoCheckpoint(f"batch {wanted} is not among batches {known[0]} to {known[-1]}, which are still there")
    return known[-1] if wanted is None else wanted


def name_of(place: str) -> str:
    """Return the name of the job."""
    return os.path.basename(place.rstrip("/"))
