"""Variables of the environment in a pipeline file, and the places that mistakes after them have."""

from __future__ import annotations

import pytest

from service.plan.nodes import Place
from service.sql.parse.source import read_source
from service.sql.pipeline import PipelineErrors, read

VALUES = {"TOPIC": "orders", "PASSWORD": "it's", "EMPTY": ""}


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("a ${TOPIC} b", "a orders b"),
        ("'${PASSWORD}'", "'it''s'"),
        ("${PASSWORD}", "it's"),
        ("${NONE:-other} ${TOPIC:-other}", "other orders"),
        ("${NONE:-}", ""),
        ("${EMPTY}", ""),
        ("-- ${NONE}\n/* ${NONE} */ `${NONE}`", "-- ${NONE}\n/* ${NONE} */ `${NONE}`"),
        ("'-- ${TOPIC}'", "'-- orders'"),
        ("'`' ${TOPIC}", "'`' orders"),
        ("'it''s ${TOPIC}'", "'it''s orders'"),
        ("$${TOPIC}", "${TOPIC}"),
        ("$TOPIC {x}", "$TOPIC {x}"),
    ],
)
def test_a_variable_is_filled_in(written: str, text: str):
    source = read_source("p.sql", written, VALUES)
    assert source.text == text
    assert not source.missing


def test_a_place_is_that_of_the_file_as_written():
    source = read_source("p.sql", "one ${TOPIC} two\n  three", VALUES)
    places = {word: source.place(source.text.index(word)) for word in ("one", "orders", "ders", "two", "three")}
    assert places == {
        "one": Place(1, 1),
        "orders": Place(1, 5),
        "ders": Place(1, 5),
        "two": Place(1, 14),
        "three": Place(2, 3),
    }


def test_a_missing_variable_is_a_mistake_with_its_place():
    with pytest.raises(PipelineErrors) as raised:
        read("SET 'pipeline.name' =\n  'x${NAME}';", {})
    assert str(raised.value) == (
        "pipeline.sql:2:5: the environment has no variable NAME\n  hint:   set it, or write ${NAME:-default}"
    )
