"""Checkpoints in object stores: the archives and the settings that Spark needs to reach them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlparse

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"

FOLDER_FILES = "tailrace.checkpoint.FolderFiles"
"""Our class for the files of a checkpoint in a folder."""

STORE_FILES = "tailrace.checkpoint.StoreFiles"
"""Our class for the files of a checkpoint in an object store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStore:
    """A kind of object store: `archives` is the list of archives with its client, `settings` are those of Spark for
    it."""

    archives: str
    settings: Mapping[str, str] = field(default_factory=dict)


STORES: Mapping[str, ObjectStore] = {
    "s3a": ObjectStore(archives="s3a"),
    "gs": ObjectStore(
        archives="gs",
        settings={
            "spark.hadoop.fs.gs.impl": "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem",
            "spark.hadoop.fs.AbstractFileSystem.gs.impl": "org.apache.hadoop.fs.gs.Gs",
        },
    ),
}
"""The object stores whose clients the image holds, by the scheme of their URLs."""


def archives(checkpoint: str) -> tuple[str, ...]:
    """Return the lists of archives that a checkpoint at this place needs beside Spark's own."""
    store = STORES.get(urlparse(checkpoint).scheme)
    return (store.archives,) if store else ()


def suggested(checkpoint: str) -> Mapping[str, str]:
    """Return Spark's settings for the store, unless the user sets them."""
    store = STORES.get(urlparse(checkpoint).scheme)
    return store.settings if store else {}


def required(checkpoint: str) -> Mapping[str, str]:
    """Return the settings for writing a file of the checkpoint atomically.

    On a local file system a rename replaces the old file, which suffices; Spark's default forks chmod and readlink
    about ten times a batch, ours never. In an object store a put is atomic, and a rename is not: Spark's default takes
    25 requests for a file, ours 3.
    """
    scheme = urlparse(checkpoint).scheme
    if scheme in ("", "file"):
        return {_MANAGER: FOLDER_FILES}
    return {_MANAGER: STORE_FILES} if scheme in STORES else {}
