"""The files of a checkpoint in a folder and in object stores: the same answers everywhere."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from service.checkpoint.address import CheckpointAddress
from service.checkpoint.files import Files, FolderFiles, StateMissing, StoredAt
from service.checkpoint.traffic import Traffic
from tests.spark.fake_s3 import fake_s3


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a store that is asked as Google's is."""
    # In a process of its own: Arrow's client waits for an answer without letting another thread give it.
    command = [sys.executable, "-m", "tests.spark.fake_gcs", str(tmp_path_factory.mktemp("google"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as store:
        assert store.stdout is not None
        yield store.stdout.readline().strip()
        assert store.stdin is not None
        store.stdin.close()


@pytest.fixture(params=["folder", "s3a", "gs"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    """A checkpoint that has nothing yet."""
    scratch = str(tmp_path / "scratch")
    if request.param == "folder":
        yield CheckpointAddress(str(tmp_path / "checkpoint")).open()
    elif request.param == "s3a":
        with fake_s3() as (address, _):
            settings = {
                "fs.s3a.endpoint": address,
                "fs.s3a.endpoint.region": "nowhere-1",
                "fs.s3a.path.style.access": "true",
                "fs.s3a.access.key": "key",
                "fs.s3a.bucket.bucket.access.key": "own",
                "fs.s3a.secret.key": "secret",
            }
            yield CheckpointAddress("s3a://bucket/folder/job", settings, scratch, 1 << 20).open()
    else:
        settings = {"fs.gs.storage.root.url": request.getfixturevalue("google"), "fs.gs.auth.type": "UNAUTHENTICATED"}
        yield CheckpointAddress(f"gs://bucket/{tmp_path.name}/job", settings, scratch, 1 << 20).open()


def test_a_file_is_read_as_it_was_written_whole_and_in_part(files: Files) -> None:
    assert files.get("tailrace/state/one") is None
    files.put("tailrace/state/one", [b"abc", pa.py_buffer(b"defgh"), b""])
    assert files.get("tailrace/state/one") == b"abcdefgh"
    assert files.block(StoredAt("tailrace/state/one", 2, 4)).to_pybytes() == b"cdef"
    files.put("tailrace/state/one", [b"rewritten"])
    assert files.get("tailrace/state/one") == b"rewritten"


def test_the_files_of_a_folder_are_listed_and_removed(files: Files) -> None:
    assert files.names("tailrace/state") == []
    for name in ("tailrace/state/b", "tailrace/state/a", "tailrace/versions/c"):
        files.put(name, [b"x"])
    assert files.names("tailrace/state") == ["a", "b"]
    files.remove(["tailrace/state/a", "tailrace/state/gone"])
    assert files.names("tailrace/state") == ["b"]
    assert files.names("tailrace/versions") == ["c"]


def test_a_block_whose_file_is_gone_is_named(files: Files) -> None:
    with pytest.raises(StateMissing, match="tailrace/state/gone is missing"):
        files.block(StoredAt("tailrace/state/gone", 0, 1))


def test_a_block_that_a_loss_of_power_has_emptied_is_missing(files: Files) -> None:
    files.put("tailrace/state/empty", [])
    with pytest.raises(StateMissing, match="tailrace/state/empty is missing"):
        files.block(StoredAt("tailrace/state/empty", 0, 10))


def test_a_large_block_is_written_and_read_in_ranges(files: Files) -> None:
    data = bytes(range(256)) * (12 << 12)
    files.put("tailrace/state/large", [data])
    assert files.block(StoredAt("tailrace/state/large", len(data) - 300, 300)).to_pybytes() == data[-300:]


def test_a_file_gets_a_second_name_that_outlives_the_first(files: Files) -> None:
    files.put("tailrace/backfill/tailrace/state/one", [b"abcd"])
    for _ in range(2):  # whoever was killed on the way does it again
        files.link("tailrace/backfill/tailrace/state/one", "tailrace/state/two")
    files.remove_folder("tailrace/backfill")
    files.remove_folder("tailrace/backfill")
    assert files.get("tailrace/backfill/tailrace/state/one") is None
    assert files.block(StoredAt("tailrace/state/two", 1, 2)).to_pybytes() == b"bc"
    with pytest.raises(StateMissing, match="state/one is missing"):
        files.link("tailrace/backfill/tailrace/state/one", "tailrace/state/three")


def test_without_hard_links_a_file_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "no hard links")

    monkeypatch.setattr("os.link", refuse)
    files = FolderFiles(str(tmp_path))
    files.put("backfill/one", [b"abcd"])
    files.link("backfill/one", "state/two")
    files.remove_folder("backfill")
    assert files.get("state/two") == b"abcd"
    assert files.names("state") == ["two"]


def test_what_is_asked_of_a_store_is_counted_and_of_a_folder_nothing(
    files: Files,
) -> None:
    files.put("tailrace/state/one", [b"abc", pa.py_buffer(b"defgh")])
    files.get("tailrace/state/one")
    files.get("tailrace/state/none")
    for _ in range(2):  # the second time there is a copy
        files.block(StoredAt("tailrace/state/one", 2, 4))
    files.names("tailrace/state")
    files.remove(["tailrace/state/one"])
    expected = Traffic({"write": 1, "read": 2, "look": 1, "list": 1, "remove": 1}, 8 + 4, 8)
    nothing = Traffic({}, 0, 0)
    assert files.traffic.take() == (nothing if isinstance(files, FolderFiles) else expected)
    assert files.traffic.take() == nothing
