"""Every list of formats knows the same formats."""

from __future__ import annotations

import pytest

from service.formats.registry import FORMATS
from service.local.text_formats import IN_TEXT
from service.plan.formats import AVRO, CARRIES_CHANGES, SCHEMA_OF_ALL_COLUMNS
from service.sql.options.format_options import FORMAT_OPTIONS, WITH_REGISTRY


def test_a_format_that_can_be_read_and_written_has_options_and_the_other_way_round():
    assert set(FORMAT_OPTIONS) == set(FORMATS)


@pytest.mark.parametrize("listed", [AVRO, CARRIES_CHANGES, SCHEMA_OF_ALL_COLUMNS, WITH_REGISTRY, IN_TEXT.keys()])
def test_a_list_of_formats_names_none_that_there_is_not(listed: frozenset[str]):
    assert listed - FORMATS.keys() == set()


def test_a_format_that_asks_a_registry_has_text_in_its_place_in_a_test_case():
    assert WITH_REGISTRY - IN_TEXT.keys() == set()


@pytest.mark.parametrize("kind", IN_TEXT)
def test_text_in_place_of_a_format_carries_changes_where_the_format_does(kind: str):
    assert IN_TEXT[kind] not in IN_TEXT
    assert (IN_TEXT[kind] in CARRIES_CHANGES) == (kind in CARRIES_CHANGES)
