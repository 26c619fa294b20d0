"""The address of a job's state, as a value that is sent to tasks, and how they open it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlparse

from pyarrow import fs

from service.checkpoint.cache import Cache
from service.checkpoint.files import Files, FolderFiles, StoreFiles

SCHEMES = ("", "file", "s3a", "gs")

NEEDED = frozenset(
    {
        *("access.key", "secret.key", "session.token", "aws.credentials.provider"),
        *("endpoint", "endpoint.region", "path.style.access", "connection.ssl.enabled"),
        *("auth.type", "auth.service.account.json.keyfile", "storage.root.url"),
    }
)
"""The supported settings of Hadoop's clients, without their prefix."""


@dataclass(frozen=True, slots=True)
class CheckpointAddress:
    """`url` is the folder of the job's checkpoint. `hadoop` are the settings of the client of its store, as Spark has
    them; copies take up to `cache_bytes` in `scratch`."""

    url: str
    hadoop: Mapping[str, str] = field(default_factory=dict)
    scratch: str = ""
    cache_bytes: int = 0

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, where a lock keeps a second driver out, and not a place in an object store."""
        return urlparse(self.url).scheme in ("", "file")

    def open(self) -> Files:
        """Return the files: one object per address and process."""
        return _opened(self.url, tuple(sorted(self.hadoop.items())), self.scratch, self.cache_bytes)


@lru_cache(64)
def _opened(url: str, hadoop: tuple[tuple[str, str], ...], scratch: str, cache_bytes: int) -> Files:
    parts = urlparse(url)
    if parts.scheme in ("", "file"):
        return FolderFiles(parts.path)
    store = {"s3a": _s3, "gs": _gcs}[parts.scheme](dict(hadoop), parts.netloc)
    return StoreFiles(store, parts.netloc + parts.path, Cache(Path(scratch) / "blocks", cache_bytes))


def _s3(hadoop: dict[str, str], bucket: str) -> fs.FileSystem:
    """The client of `s3a`, with the settings of Hadoop's; those of the bucket go before those of all buckets."""
    settings = _of_bucket(hadoop, "fs.s3a.", bucket)
    options: dict[str, object] = {"allow_delayed_open": True, "background_writes": False}
    if "AnonymousAWSCredentialsProvider" in settings.get("aws.credentials.provider", ""):
        options["anonymous"] = True
    elif settings.get("access.key"):
        options |= {"access_key": settings["access.key"], "secret_key": settings.get("secret.key", "")}
        if settings.get("session.token"):
            options["session_token"] = settings["session.token"]
    endpoint = settings.get("endpoint", "")
    if endpoint:
        scheme, found, rest = endpoint.rpartition("://")
        options["endpoint_override"] = rest
        options["scheme"] = (
            scheme if found else ("https" if settings.get("connection.ssl.enabled") != "false" else "http")
        )
        options["force_virtual_addressing"] = settings.get("path.style.access", "false") != "true"
    if settings.get("endpoint.region"):
        options["region"] = settings["endpoint.region"]
    elif not endpoint:
        options["region"] = fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(**options)


def _gcs(hadoop: dict[str, str], bucket: str) -> fs.FileSystem:
    """The client of `gs`: credentials of a key file, else those that the machine or the pod has."""
    settings = _of_bucket(hadoop, "fs.gs.", bucket)
    options: dict[str, object] = {}
    key_file = settings.get("auth.service.account.json.keyfile")
    if key_file:
        os.environ["GOOGLE_APPLICATION_CREDENTIALS"] = key_file  # there is no other way to pass it
    if settings.get("auth.type") == "UNAUTHENTICATED":
        options["anonymous"] = True
    root = settings.get("storage.root.url", "")
    if root:
        parts = urlparse(root)
        options |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
    return fs.GcsFileSystem(**options)


def _of_bucket(hadoop: Mapping[str, str], prefix: str, bucket: str) -> dict[str, str]:
    """The settings that begin with `prefix`, without it; those of `bucket` replace those of all."""
    general = {k.removeprefix(prefix): v for k, v in hadoop.items() if k.startswith(prefix)}
    own = f"bucket.{bucket}."
    return general | {k.removeprefix(own): v for k, v in general.items() if k.startswith(own)}
