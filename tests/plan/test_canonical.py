"""What a plan is called: what makes two expressions, nodes and kernels the same to a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from operators.base import KernelDefaults
from operators.fingerprint import DUCKDB_TEXT, fingerprint
from operators.joins.kinds import JoinKind
from operators.joins.regular_join import RegularJoin
from service.plan.canonical import TextOfFormat6, canonical
from service.plan.expressions import Call, Column, Literal
from service.plan.nodes import AggregateCall
from service.plan.passes import normalize
from service.plan.types import BIGINT, BOOLEAN, DOUBLE, STRING, DataType
from service.plan.walk import in_order
from service.sql.errors import SqlError
from service.sql.pipeline import load
from tests.sql.evaluation import compiled
from tests.sql.flink_oracle import cases

TESTS = Path(__file__).parents[1]
X = Column(0, STRING, "x")


def _node(*, grown: bool) -> Any:
    """A node, and the same with two attributes more."""
    if not grown:

        @dataclass(frozen=True)
        class Shape:
            size: int
            offset: int = 0

        return Shape

    @dataclass(frozen=True)
    class Shape:  # type: ignore[no-redef]
        size: int
        offset: int = 0
        inner: tuple[int, ...] = ()
        names: list[str] = field(default_factory=list)

    return Shape


def test_a_node_that_gets_an_attribute_with_a_default_is_called_as_before():
    before, after = _node(grown=False), _node(grown=True)
    assert canonical(before(5)) == canonical(after(5)) == "Shape(size=5)"
    assert canonical(before(5, 1)) == canonical(after(5, 1)) != canonical(after(5, 0))
    assert canonical(after(5, inner=(1,))) != canonical(after(5))


def _kernel(*, grown: bool) -> Any:
    @dataclass(frozen=True)
    class Before(KernelDefaults):
        key: int
        ttl: int = 0

    @dataclass(frozen=True)
    class After(Before):
        also: bool = False
        text: str = field(default="", metadata=DUCKDB_TEXT)

    After.__name__ = "Before"
    return After if grown else Before


def test_a_kernel_that_gets_an_attribute_with_a_default_has_the_fingerprint_that_it_had():
    before, after = _kernel(grown=False), _kernel(grown=True)
    assert fingerprint(before(1, ttl=5)) == fingerprint(after(1, ttl=7)) != fingerprint(after(1))
    assert fingerprint(after(1)) == fingerprint(after(1, text="lower(x)"))
    assert fingerprint(after(1)) != fingerprint(after(1, also=True))


def test_the_fingerprint_of_a_kernel_knows_its_arguments_and_its_tables_and_no_duckdb_text(monkeypatch):
    schema = pa.schema([("c0", pa.int64())])

    def join(**more: Any) -> RegularJoin:
        sides = {"left": schema, "right": schema, "left_keys": (0,), "right_keys": (0,), "null_safe": (False,)}
        return RegularJoin(**{"kind": JoinKind.INNER, **sides, **more})

    known = join(residual="c0 > 1").fingerprint()
    assert join(residual="c0 > CAST(1 AS BIGINT)").fingerprint() == known
    assert join(kind=JoinKind.LEFT).fingerprint() != known
    monkeypatch.setattr(RegularJoin, "traces", lambda self: {})
    assert join().fingerprint() != known


def test_a_call_is_its_function_its_arguments_constants_type_and_version_and_not_its_template():
    call = Call("F", (X,), STRING, "f({0})")
    same = Call("F", (X,), STRING, "g({0}, 1)")
    others = [
        Call("G", (X,), STRING, "f({0})"),
        Call("F", (X, X), STRING, "f({0})"),
        Call("F", (X,), BOOLEAN, "f({0})"),
        Call("F", (X,), STRING, "f({0})", constants=("day",)),
        Call("F", (X,), STRING, "f({0})", constants=(Literal("1", STRING),)),
        Call("F", (X,), STRING, "f({0})", versions=(("F", 2),)),
        Call("F", (X,), STRING, "f({0})", deterministic=False),
    ]
    assert canonical(call) == canonical(same)
    assert len({canonical(each) for each in (call, *others)}) == 1 + len(others)


def _calls(value: Any) -> Iterator[Call]:
    if isinstance(value, Call):
        yield value
    if isinstance(value, tuple | list):
        for each in value:
            yield from _calls(each)
    elif is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            if part.name not in ("input", "inputs", "left", "right"):
                yield from _calls(getattr(value, part.name))


def _of_pipelines() -> Iterator[tuple[str, Call]]:
    for case in sorted(TESTS.glob("pipelines/*/pipeline.sql")):
        for job in load(case, {}).jobs:
            for node in in_order(normalize(job).sinks):
                yield from ((job.zone, call) for call in _calls(node))


def _of_expressions() -> Iterator[tuple[str, Call]]:
    for case in cases():
        columns = {name: (type_, "") for name, type_ in case.columns.items()}
        with suppress(SqlError):
            yield from ((case.zone, call) for call in _calls(compiled(case.sql, columns, case.zone)))


CONNECTIVES = ("AND", "OR")
"""Where an operand may fail, these are computed in another way, and answer the same."""


@pytest.mark.parametrize("calls", [_of_pipelines, _of_expressions])
def test_whatever_a_template_was_made_from_is_part_of_what_a_call_is_called(calls):
    found: dict[str, set[str]] = {}
    for zone, call in calls():
        if call.name not in CONNECTIVES:
            heads = [canonical(a if isinstance(a, Literal) else a.type) for a in call.arguments]
            key = f"{zone} {call.name} {heads} {canonical(call.constants)} {canonical(call.type)}"
            found.setdefault(key, set()).add(call.template)
    assert len(found) > 50
    assert {key: templates for key, templates in found.items() if len(templates) > 1} == {}


@pytest.mark.parametrize(
    ("function", "type_", "refused"), [("SUM", BIGINT, False), ("SUM", DOUBLE, True), ("VAR_POP", BIGINT, True)]
)
def test_an_aggregate_that_was_mended_is_another_one_in_a_checkpoint_of_format_6(
    function: str, type_: DataType, refused: bool
):
    assert ("version=2" in TextOfFormat6().of(AggregateCall(function, (0,), type_))) is refused
