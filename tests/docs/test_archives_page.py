"""The page on security tells of all Java archives that are fetched, and of their versions."""

from __future__ import annotations

import re
from fnmatch import fnmatch

import pytest

from scripts.components import LISTS
from service.archives import load
from tests.docs.pages import ROOT, table_rows, text_of

ARCHIVES = [archive for name in LISTS for archive in load(name).archives]
PAGE = text_of(ROOT / "docs" / "security.md")
(LINE,) = re.findall("^The Java archives, reviewed by hand .*$", PAGE, re.MULTILINE)
LISTED = [found for cells in table_rows(PAGE, LINE) for found in re.findall(r"`([^`]+)`(?: (\d[\w.-]*))?", cells[0])]
"""Names of archives, `*` for any letters, each with its version or the beginning of it where that is given."""

LISTED_TOGETHER = {"org.apache.kafka", "software.amazon.awssdk"}
"""Groups of which the page names the parts together."""


def named(artifact: str, name: str) -> bool:
    """Whether the page means this archive; the version of Scala may be left out."""
    return fnmatch(artifact, name) or fnmatch(artifact, f"{name}_2.13")


@pytest.mark.parametrize(("name", "version"), LISTED)
def test_an_archive_that_is_listed_is_there_in_this_version(name: str, version: str):
    versions = [archive.version for archive in ARCHIVES if named(archive.artifact, name)]
    assert [each for each in versions if f"{each}.".startswith(f"{version}." if version else "")]


def test_every_archive_is_listed():
    alone = [archive for archive in ARCHIVES if archive.group not in LISTED_TOGETHER]
    assert [str(each) for each in alone if not any(named(each.artifact, name) for name, _ in LISTED)] == []
    (sdk,) = re.findall(r"Amazon's SDK ([\d.]+\d)", PAGE)
    assert {archive.version for archive in ARCHIVES if archive.group == "software.amazon.awssdk"} == {sdk}
