"""README and schema say what the values and the settings are."""

from __future__ import annotations

from scripts import chart_docs
from tests.chart.rendering import CHART

VALUES = (CHART / "values.yaml").read_text()


def test_the_values_in_the_readme_are_those_of_the_chart():
    """After a change: make chart"""
    written = chart_docs.README.read_text()
    assert written == chart_docs.readme(written, VALUES)


def test_the_settings_in_the_schema_are_those_of_the_service():
    """After a change: make chart"""
    written = chart_docs.SCHEMA.read_text()
    assert written == chart_docs.schema(written)


def test_every_value_is_documented():
    assert chart_docs.undocumented(VALUES) == []


def test_a_value_without_a_comment_is_found():
    text = "## One\n\n# What a is.\na: 1\nb: 2\n\n# What c is.\nc:\n  # What d is.\n  d: 3\n  e: 4\n"
    assert chart_docs.undocumented(text) == ["b", "c.e"]


def test_a_group_has_no_default_and_what_belongs_to_a_value_is_its_default():
    text = "## One\n\n# A group.\na:\n  # A list,\n  # of two.\n  b:\n    - x\n    - y\n"
    (section,) = chart_docs.sections(text)
    assert section.values == (
        chart_docs.Value("a", "A group.", None),
        chart_docs.Value("a.b", "A list, of two.", '["x", "y"]'),
    )
