"""Fields of a ROW that nobody reads are dropped at the scan: a decoder decodes only what is used.

`SELECT bid.price FROM events` needs one field of one ROW. A field counts as read where an expression takes it out of
its ROW; a ROW that is read as a whole keeps all its fields. Projections and filters hand a ROW on; any other node reads
it as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from service.plan.expressions import Call, Column, Expression
from service.plan.formats import traits
from service.plan.nodes import Field, Filter, Job, Node, Project, Scan
from service.plan.passes.expand_computed import watermark
from service.plan.types import DataType, Row
from service.plan.walk import fields, in_order, inputs, rewrite

Path = tuple[str, ...]
"""Names of fields, from a column inwards; () is the column as a whole."""

Paths = dict[int, set[Path]]
"""What is read of each column of a node."""

_WHOLE: Path = ()
"""The path of a column that is read as a whole."""


def prune_fields(job: Job) -> Job:
    """Drop the fields of ROW columns that no consumer of a scan reads.

    >>> from tests.sql.outline import columns, resolved
    >>> from service.plan.walk import in_order
    >>> bids = "CREATE TABLE bids (bid ROW<price INT, note STRING>) WITH ('connector' = 'datagen');"
    >>> job = prune_fields(resolved("SELECT bid.price FROM bids", bids))
    >>> [columns(node) for node in in_order(job.sinks)]
    ['bid ROW<`price` INT>', 'price INT']
    """
    nodes = in_order(job.sinks)
    read: dict[int, Paths] = {id(n): {} for n in nodes}
    for sink in job.sinks:
        _add(read[id(sink.input)], ((i, _WHOLE) for i in range(len(fields(sink.input)))))
    for node in reversed(nodes):
        for each in inputs(node):
            _add(read[id(each)], _read_of_input(node, each, read[id(node)]))
    narrow = {id(n): _narrowed(n, read[id(n)]) for n in nodes if isinstance(n, Scan)}
    if all(id(n) not in narrow or narrow[id(n)] is n for n in nodes):
        return job
    # A scan has no inputs, so that the rewriting meets the very nodes that were asked above.
    return rewrite(job, lambda node, _: narrow[id(node)] if id(node) in narrow else _retyped(node))


def _add(paths: Paths, more: Iterable[tuple[int, Path]]) -> None:
    for column, path in more:
        paths.setdefault(column, set()).add(path)


def _read_of_input(node: Node, input: Node, read: Paths) -> Iterator[tuple[int, Path]]:
    """What `node` reads of its input, of each column the paths."""
    match node:
        case Project(expressions=expressions):
            for place, paths in read.items():
                for path in paths:
                    yield from _read_by(expressions[place], path)
        case Filter(condition=condition):
            yield from ((column, path) for column, paths in read.items() for path in paths)
            yield from _read_by(condition, _WHOLE)
        case _:
            yield from ((column, _WHOLE) for column in range(len(fields(input))))


def _read_by(expression: Expression, wanted: Path) -> Iterator[tuple[int, Path]]:
    """What `expression` reads of each column, where of its own value the field at `wanted` is read."""
    match expression:
        case Column(index):
            yield index, wanted
        case Call() if (name := field_taken(expression)) is not None:
            yield from _read_by(expression.arguments[0], (name, *wanted))
        case Call(arguments=arguments):
            for argument in arguments:
                yield from _read_by(argument, _WHOLE)


def field_taken(call: Call) -> str | None:
    """Return the name of the field that `call` takes out of a ROW; None if it does another thing."""
    if not call.name.startswith(".") or len(call.arguments) != 1:
        return None
    name = call.name[1:]
    row = call.arguments[0].type
    return name if isinstance(row, Row) and name in row.names else None


def _narrowed(scan: Scan, read: Paths) -> Scan:
    """The scan with ROW columns of the fields that are read; the very same object where that is all of them."""
    paths = {column: set(found) for column, found in read.items()}
    if (asserted := watermark(scan.table)) is not None:
        places = {index: place for place, index in enumerate(scan.columns)}
        _add(paths, ((places[index], path) for index, path in _read_by(asserted, _WHOLE) if index in places))
    types = {place: narrowed_type(field.type, paths.get(place, {_WHOLE})) for place, field in enumerate(scan.fields)}
    changed = {place: type_ for place, type_ in types.items() if type_ != scan.fields[place].type}
    if not changed or _schema_of_all(scan):
        return scan
    columns = list(scan.table.columns)
    for place, type_ in changed.items():
        index = scan.columns[place]
        columns[index] = replace(columns[index], type=type_)
    return replace(scan, table=replace(scan.table, columns=tuple(columns)), fields=_typed(scan.fields, changed))


def _schema_of_all(scan: Scan) -> bool:
    """Whether the types of all columns say where in a record a value stands."""
    forms = (scan.table.connector.key_format, scan.table.connector.value_format)
    return any(form is not None and traits(form).read_by_all_columns for form in forms)


def narrowed_type(type_: DataType, paths: set[Path]) -> DataType:
    """Return `type_` with the fields that `paths` lead to, in the order that they had."""
    if not isinstance(type_, Row) or _WHOLE in paths or not paths:
        return type_
    below: dict[str, set[Path]] = {}
    for first, *rest in paths:
        below.setdefault(first, set()).add(tuple(rest))
    kept = [(n, narrowed_type(t, below[n])) for n, t in zip(type_.names, type_.types, strict=True) if n in below]
    return Row(tuple(n for n, _ in kept), tuple(t for _, t in kept))


def _retyped(node: Node) -> Node:
    """A projection or filter whose expressions have the types that its input has now."""
    match node:
        case Filter(condition=condition):
            new = _with_types(condition, node.input)
            return node if new == condition else replace(node, condition=new)
        case Project(expressions=expressions):
            found = tuple(_with_types(e, node.input) for e in expressions)
            if found == expressions:
                return node
            changed = {i: e.type for i, e in enumerate(found) if e.type != expressions[i].type}
            return replace(node, expressions=found, fields=_typed(node.fields, changed))
        case _:
            return node


def _with_types(expression: Expression, input: Node) -> Expression:
    match expression:
        case Column(index):
            type_ = fields(input)[index].type
            return expression if type_ == expression.type else replace(expression, type=type_)
        case Call() if field_taken(expression) is not None:
            row = _with_types(expression.arguments[0], input)
            assert isinstance(row.type, Row)
            type_ = row.type.types[row.type.names.index(expression.name[1:])]
            return replace(expression, arguments=(row,), type=type_)
        case Call(arguments=arguments):
            return replace(expression, arguments=tuple(_with_types(a, input) for a in arguments))
        case _:
            return expression


def _typed(known: tuple[Field, ...], types: Mapping[int, DataType]) -> tuple[Field, ...]:
    return tuple(replace(f, type=types[i]) if i in types else f for i, f in enumerate(known))
