"""The files of a checkpoint as Python tasks see them: written atomically, read by range, never changed.

Files in a folder, local or mounted by every machine, are mapped in place. Files of an object store are read through a
local cache.
"""

from __future__ import annotations

import errno
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
from pyarrow import fs

from operators.state.mapped import MappedBytes
from service.checkpoint.cache import Cache
from service.checkpoint.traffic import TrafficCounter

ALIGNED = 64
"""Blocks begin at a multiple of this in their file, so that Arrow reads their columns in place."""


_NO_LINKS = frozenset((errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS))
"""The errors of `link` on file systems without hard links: SMB, and mounts of an object store."""


class StoredAt(NamedTuple):
    """The place of a block: a file, and the bytes of it."""

    file: str
    offset: int
    length: int


class StateMissing(Exception):
    """A file that the state needs is not in the checkpoint."""

    def __init__(self, root: str, name: str) -> None:
        super().__init__(
            f"the state is incomplete: {root}/{name} is missing\n"
            "  hint:   files of a checkpoint must not be removed; restore them, or start with a new checkpoint"
        )


class NoHardLinks(Exception):
    """The file system of a checkpoint has no hard links, which answers of lookups need."""

    def __init__(self, root: str, error: OSError) -> None:
        super().__init__(
            f"the file system of the checkpoint {root} has no hard links: {error.strerror}\n"
            "  detail: they decide which of two attempts of a task has asked a database first\n"
            "  hint:   put the checkpoint on a local disk or NFS, or give the URL of its object store (s3a://, gs://)"
        )


class Files(ABC):
    """The files of one job's checkpoint. Names are relative to its folder, with / between their parts. `traffic` counts
    the operations of an object store."""

    def __init__(self) -> None:
        self.traffic = TrafficCounter()

    @abstractmethod
    def put(self, name: str, parts: Sequence[pa.Buffer | bytes]) -> None:
        """Write a file atomically, replacing one of that name."""

    @abstractmethod
    def put_new(self, name: str, parts: Sequence[pa.Buffer | bytes]) -> bool:
        """Write a file unless it exists. Return whether it was written.

        In a folder, of two concurrent attempts one succeeds, and the file survives a loss of power. In an object store,
        if two find none at the same moment, the later one remains. Raises NoHardLinks.
        """

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """Return all of a small file, or None."""

    @abstractmethod
    def block(self, place: StoredAt) -> pa.Buffer:
        """Return part of a file. Raises StateMissing if the file is gone."""

    def mapped(self, place: StoredAt) -> pa.Buffer | MappedBytes:
        """Return `block`, and where that is in a mapped file, how its pages are given back. Raises StateMissing."""
        return self.block(place)

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Return the names, within it, of the files in `folder`."""

    @abstractmethod
    def folders(self) -> list[str]:
        """Return the names of the folders that are in that folder itself."""

    @abstractmethod
    def remove(self, names: Iterable[str]) -> None:
        """Remove files, of which some may be gone already."""

    @abstractmethod
    def link(self, name: str, to: str) -> None:
        """Give a file, which never changes, the second name `to`, or copy it there; it may be there already."""

    @abstractmethod
    def remove_folder(self, name: str) -> None:
        """Remove a folder with all that is in it; it may be gone already."""

    def written(self, place: StoredAt, data: pa.Buffer) -> None:  # noqa: B027  (nothing to do where files are mapped)
        """Note that a block was just written to `place`, and will be read soon."""


class FolderFiles(Files):
    """A checkpoint in a folder."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self._root = Path(root)

    def put(self, name: str, parts: Sequence[pa.Buffer | bytes]) -> None:
        path = self._root / name
        temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            self._write(temporary, parts)
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def put_new(self, name: str, parts: Sequence[pa.Buffer | bytes]) -> bool:
        path = self._root / name
        temporary = path.with_name(f"{path.name}.{uuid4().hex}.new")
        try:
            self._write(temporary, parts, durably=True)
            os.link(temporary, path)  # unlike a rename, it fails where the name is taken
            _sync(path.parent)
            return True
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise NoHardLinks(str(self._root), error) from error
            raise
        finally:
            temporary.unlink(missing_ok=True)

    def _write(self, path: Path, parts: Sequence[pa.Buffer | bytes], *, durably: bool = False) -> None:
        try:
            file = path.open("wb")
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("wb")
        with file:
            for part in parts:
                file.write(part)
            if durably:
                file.flush()
                os.fsync(file.fileno())

    def get(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def block(self, place: StoredAt) -> pa.Buffer:
        try:
            with pa.memory_map(str(self._root / place.file), "r") as mapped:
                mapped.seek(place.offset)
                data = mapped.read_buffer(place.length)
        except FileNotFoundError:
            raise StateMissing(str(self._root), place.file) from None
        if data.size != place.length:
            raise StateMissing(str(self._root), place.file)
        return data

    def mapped(self, place: StoredAt) -> MappedBytes:
        return MappedBytes(self.block(place))

    def names(self, folder: str) -> list[str]:
        with suppress(FileNotFoundError):
            return sorted(entry.name for entry in os.scandir(self._root / folder))
        return []

    def folders(self) -> list[str]:
        with suppress(FileNotFoundError, NotADirectoryError):
            return sorted(entry.name for entry in os.scandir(self._root) if entry.is_dir())
        return []

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self._root / name).unlink(missing_ok=True)

    def link(self, name: str, to: str) -> None:
        path, target = self._root / name, self._root / to
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, target)
        except FileExistsError:
            return
        except FileNotFoundError:
            raise StateMissing(str(self._root), name) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            temporary = target.with_name(f"{target.name}.{os.getpid()}.new")
            shutil.copyfile(path, temporary)
            temporary.rename(target)

    def remove_folder(self, name: str) -> None:
        shutil.rmtree(self._root / name, ignore_errors=True)


class StoreFiles(Files):
    """A checkpoint in an object store: `root` is a bucket and a folder. A put is atomic there."""

    def __init__(self, store: fs.FileSystem, root: str, cache: Cache) -> None:
        super().__init__()
        self._store = store
        self._root = root.rstrip("/")
        self._cache = cache

    def put(self, name: str, parts: Sequence[pa.Buffer | bytes]) -> None:
        with self._store.open_output_stream(f"{self._root}/{name}") as stream:
            for part in parts:
                stream.write(part)
        self.traffic.count("write", written=sum(memoryview(part).nbytes for part in parts))

    def put_new(self, name: str, parts: Sequence[pa.Buffer | bytes]) -> bool:
        if self._has(name):
            return False
        self.put(name, parts)
        return True

    def get(self, name: str) -> bytes | None:
        try:
            with self._store.open_input_file(f"{self._root}/{name}") as file:
                data = bytes(file.read())
        except FileNotFoundError:
            self.traffic.count("look")
            return None
        self.traffic.count("read", read=len(data))
        return data

    def block(self, place: StoredAt) -> pa.Buffer:
        found = self.mapped(place)
        return found.data if isinstance(found, MappedBytes) else found

    def mapped(self, place: StoredAt) -> pa.Buffer | MappedBytes:
        return self._cache.fetch(f"{place.file.rpartition('/')[2]}.{place.offset}", lambda: self._load(place))

    def _load(self, place: StoredAt) -> pa.Buffer:
        try:
            with self._store.open_input_file(f"{self._root}/{place.file}") as file:
                data = file.read_at(place.length, place.offset)
        except FileNotFoundError:
            raise StateMissing(self._root, place.file) from None
        self.traffic.count("read", read=len(data))
        if len(data) != place.length:
            raise StateMissing(self._root, place.file)
        return pa.py_buffer(data)

    def names(self, folder: str) -> list[str]:
        self.traffic.count("list")
        found = self._store.get_file_info(fs.FileSelector(f"{self._root}/{folder}", allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == fs.FileType.File)

    def folders(self) -> list[str]:
        self.traffic.count("list")
        found = self._store.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == fs.FileType.Directory)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self.traffic.count("remove")
            with suppress(FileNotFoundError):
                self._store.delete_file(f"{self._root}/{name}")

    def link(self, name: str, to: str) -> None:
        self.traffic.count("copy")
        try:
            self._store.copy_file(f"{self._root}/{name}", f"{self._root}/{to}")
        except OSError:
            if self._has(name):
                raise
            raise StateMissing(self._root, name) from None

    def remove_folder(self, name: str) -> None:
        self.traffic.count("list")
        found = fs.FileSelector(f"{self._root}/{name}", allow_not_found=True, recursive=True)
        for info in self._store.get_file_info(found):
            if info.type == fs.FileType.File:
                self.traffic.count("remove")
                with suppress(FileNotFoundError):
                    self._store.delete_file(info.path)

    def _has(self, name: str) -> bool:
        self.traffic.count("look")
        return bool(self._store.get_file_info(f"{self._root}/{name}").type != fs.FileType.NotFound)

    def written(self, place: StoredAt, data: pa.Buffer) -> None:
        self._cache.put(f"{place.file.rpartition('/')[2]}.{place.offset}", data)


def _sync(folder: Path) -> None:
    """Make the names in `folder` survive a loss of power."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
