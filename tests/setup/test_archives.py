"""Java archives are fetched once, checked by their sums, and named where they are missing."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from service.archives import Archive, Listing, ensure, load
from service.archives.ivy import MIRROR, SETTINGS
from service.host.machine import MachineError

CONTENT = b"not really Java"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
LISTING = Listing("some", (Archive("org.example", "thing", "1.2", SHA256),))


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place in a folder to fetch archives from, which has `LISTING`'s."""
    archive = tmp_path / "mirror" / "org" / "example" / "thing" / "1.2" / "thing-1.2.jar"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(CONTENT)
    monkeypatch.setenv(MIRROR, (tmp_path / "mirror").as_uri())
    monkeypatch.delenv(SETTINGS, raising=False)
    return archive


@pytest.mark.parametrize("name", ["spark", "kafka", "s3a", "gs"])
def test_every_archive_of_a_list_has_a_sha256_and_a_file_of_its_own(name: str):
    listing = load(name)
    assert listing.name == name
    assert all(re.fullmatch(r"[0-9a-f]{64}", archive.sha256) for archive in listing.archives)
    assert len({archive.file_name for archive in listing.archives}) == len(listing.archives)


def test_a_list_is_read_from_any_path(tmp_path: Path):
    path = tmp_path / "some.toml"
    path.write_text(f'[archives]\n"org.example:thing:1.2" = "{SHA256}"\n')
    assert load(path) == LISTING


def test_a_row_that_is_no_coordinate_is_refused(tmp_path: Path):
    path = tmp_path / "some.toml"
    path.write_text(f'[archives]\n"thing:1.2" = "{SHA256}"\n')
    with pytest.raises(ValueError, match=r'"thing:1.2" is not of the form group:artifact:version'):
        load(path)


@pytest.mark.usefixtures("no_java")
def test_archives_that_are_there_need_no_java(tmp_path: Path):
    there = tmp_path / "some" / "thing-1.2.jar"
    there.parent.mkdir()
    there.write_bytes(CONTENT)
    assert ensure(LISTING, tmp_path) == (there,)


@pytest.mark.usefixtures("no_java")
def test_a_damaged_archive_is_fetched_again(tmp_path: Path):
    there = tmp_path / "some" / "thing-1.2.jar"
    there.parent.mkdir()
    there.write_bytes(CONTENT[:-1])
    with pytest.raises(MachineError, match="no Java found"):
        ensure(LISTING, tmp_path)


@pytest.mark.e2e
@pytest.mark.usefixtures("mirror")
def test_a_missing_archive_is_fetched_and_nothing_else_is_left(tmp_path: Path):
    (path,) = ensure(LISTING, tmp_path / "cache")
    assert path.read_bytes() == CONTENT
    assert [str(file.relative_to(tmp_path / "cache")) for file in (tmp_path / "cache").rglob("*")] == [
        "some",
        "some/thing-1.2.jar",
    ]


@pytest.mark.e2e
def test_an_archive_with_another_content_is_not_used(tmp_path: Path, mirror: Path):
    mirror.write_bytes(b"something else")
    with pytest.raises(
        MachineError, match=rf"org.example:thing:1.2 was fetched with sha256 .*, the list says {SHA256}"
    ):
        ensure(LISTING, tmp_path / "cache")
    assert not list((tmp_path / "cache").rglob("*.jar"))


@pytest.mark.e2e
def test_an_archive_that_is_not_there_is_named(tmp_path: Path, mirror: Path):
    mirror.unlink()
    with pytest.raises(MachineError, match=r"^not found where Java archives are fetched from: org.example#thing;1.2"):
        ensure(LISTING, tmp_path / "cache")


@pytest.mark.e2e
def test_a_machine_without_a_network_gets_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(MIRROR, "http://127.0.0.1:1/")
    with pytest.raises(MachineError, match=r"^the Java archives cannot be fetched \(\w*ConnectException\); check the"):
        ensure(LISTING, tmp_path / "cache")
