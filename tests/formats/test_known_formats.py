"""Every table of formats knows the same formats."""

from __future__ import annotations

import pytest

from service.formats.registry import FORMATS
from service.plan.formats import TRAITS
from service.sql.options.format_options import FORMAT_OPTIONS

IN_TEXT = {kind: known.in_text for kind, known in TRAITS.items() if known.in_text}


def test_a_format_that_can_be_read_and_written_has_options_and_traits_and_the_other_way_round():
    assert set(FORMAT_OPTIONS) == set(FORMATS)
    assert set(TRAITS) == set(FORMATS)


def test_a_format_that_asks_a_registry_has_text_in_its_place_in_a_test_case():
    assert {kind for kind, known in TRAITS.items() if known.with_registry} - IN_TEXT.keys() == set()


def test_a_format_has_the_options_of_a_registry_where_it_asks_one():
    for kind, known in TRAITS.items():
        assert ("basic-auth.user-info" in FORMAT_OPTIONS[kind]) == known.with_registry, kind


@pytest.mark.parametrize("kind", IN_TEXT)
def test_text_in_place_of_a_format_carries_changes_where_the_format_does(kind: str):
    instead = TRAITS[IN_TEXT[kind]]
    assert not instead.in_text
    assert instead.carries_changes == TRAITS[kind].carries_changes
