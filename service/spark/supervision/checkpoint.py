"""What the driver keeps in a checkpoint beside Spark's own files: an id, the ends of bounded sources, and what the
query means whose state it is."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyspark.sql import SparkSession

from service.checkpoint.address import NEEDED, SCHEMES
from service.checkpoint.files import Files, FolderFiles
from service.checkpoint.small_files import QUERY
from service.deployment.upgrading import change_of_log, in_format_of_today, remembered, upgrade_of
from service.plan.meaning import Meaning
from service.plan.upgrade import Upgrade
from service.runtime.shard_operators import StateMismatch
from service.spark.internals.jvm import elements, hadoop_configuration, java_class

NEW = ".new"
"""The end of the name of a file that is about to replace another."""


class Checkpoint:
    """The checkpoint of one job, on any file system that Hadoop knows; small JSON files in its folder `tailrace`."""

    def __init__(self, session: SparkSession, url: str) -> None:
        self.url = url if urlparse(url).scheme else str(Path(url).resolve())
        self._path_class: Any = java_class(session, "org.apache.hadoop.fs.Path")
        self._path: Any = self._path_class(self.url)
        local = urlparse(self.url).scheme in ("", "file")
        self._folder = FolderFiles(str(self._path.toUri().getPath())) if local else None
        self._hadoop: Any = hadoop_configuration(session)

    @cached_property
    def _files(self) -> Any:
        """The file system. It is opened when it is needed, since an object store may refuse us at any time."""
        return self._path.getFileSystem(self._hadoop)

    def agree(self, now: Meaning) -> Upgrade | None:
        """Return what happens to the state under the query that means `now`, None if the checkpoint has this query.
        Raises StateMismatch if it cannot continue."""
        return upgrade_of(self.read(QUERY), now, self.begun(), self.url)

    def take(self, now: Meaning, files: Files) -> None:
        """Make the checkpoint with these files that of the query that means `now`, and rewrite its log for that query's
        sources."""
        known = self.read(QUERY)
        change = None if known is None else change_of_log(files, known, now)
        self.write(QUERY, remembered(now, change))
        if change is not None:
            change.put(files)

    def taken(self) -> bool:
        """Return whether the checkpoint holds a query in the current format."""
        return in_format_of_today(self.read(QUERY))

    def last_planned(self) -> int:
        """Return the last planned batch, -1 if there is none: a run may have to repeat it."""
        return self._last("offsets")

    def begun(self) -> int | None:
        """Return the batch that is planned and not done."""
        planned = self._last("offsets")
        return planned if planned > self._last("commits") else None

    def client_settings(self) -> dict[str, str]:
        """Return Spark's settings for the client of the checkpoint's store, as far as Python tasks need them.

        Raises StateMismatch for a store that tasks cannot reach.
        """
        scheme = urlparse(self.url).scheme
        if scheme not in SCHEMES:
            raise StateMismatch(
                f"a checkpoint cannot be in {scheme}://\n"
                "  hint:   TAILRACE_CHECKPOINT is a folder, or the URL of a folder in s3a:// or gs://"
            )
        if scheme in ("", "file"):
            return {}
        prefix = f"fs.{scheme}."
        settings = self._hadoop.getPropsWithPrefix(prefix)
        names = [str(name) for name in elements(settings.keySet())]
        return {prefix + name: str(settings[name]) for name in names if name.startswith("bucket.") or name in NEEDED}

    def shards(self, wanted: int) -> int:
        """Return the number of tasks of each level in the next batch. This is `wanted`, unless that batch has begun:
        some of its tasks may have written their rows, and the others must write the rest."""
        known = self.read("shards")
        if known is not None and self.begun() is not None:
            return int(known)
        if known != wanted:
            self.write("shards", wanted)
        return wanted

    def readers(self, wanted: int) -> int:
        """Return the number of tasks that read each source in the next batch of a plan without levels, whose tasks
        write what they read. This is `wanted`, unless that batch has begun. 0 = a task for each Kafka partition."""
        known = self.read("readers")
        if self.begun() is not None:
            return int(known or 0)
        if known != wanted:
            self.write("readers", wanted)
        return wanted

    def last_done(self) -> int:
        """Return the last finished batch, -1 if there is none."""
        return self._last("commits")

    def _last(self, log: str) -> int:
        """The last batch of one of Spark's logs, -1 if there is none."""
        return max((int(name) for name in self._names(log) if name.isdigit()), default=-1)

    def identifier(self) -> str:
        """Return a random id, made with the checkpoint. Output belongs to it, so a new checkpoint writes everything
        again."""
        known = self.read("id")
        if known is None:
            known = uuid.uuid4().hex[:16]
            self.write("id", known)
        return str(known)

    def started(self) -> bool:
        """Return whether a batch was ever planned here. Spark keeps the offsets of the last hundred."""
        return any(name.isdigit() for name in self._names("offsets"))

    def _names(self, folder: str) -> list[str]:
        if self._folder is not None:  # the JVM would be asked four times for each name
            return self._folder.names(folder)
        path = self._path_class(self._path, folder)
        if not self._files.exists(path):
            return []
        return [str(each.getPath().getName()) for each in self._files.listStatus(path)]

    def read(self, name: str) -> Any:
        """Return the JSON value of a small file, or None."""
        written = self._bytes(self._file(name))
        if written is not None:
            return json.loads(written)
        # A process that is killed while it replaces the file leaves the new one, whole; one that is killed earlier, a
        # part of it.
        with suppress(ValueError):
            return json.loads(self._bytes(self._file(name + NEW)) or b"null")
        return None

    def write(self, name: str, value: Any) -> None:
        """Replace a small file. If the process is killed, `read` finds the old value or the new one."""
        temporary = self._file(name + NEW)
        stream = self._files.create(temporary, True)
        try:
            stream.write(json.dumps(value).encode())
        finally:
            stream.close()
        self._files.delete(self._file(name), False)
        self._files.rename(temporary, self._file(name))

    def _bytes(self, path: Any) -> bytes | None:
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def _file(self, name: str) -> Any:
        return self._path_class(self._path, f"tailrace/{name}.json")
