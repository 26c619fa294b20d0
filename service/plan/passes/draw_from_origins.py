"""RAND() and UUID() become functions of the record that a row comes from, and rows of one time are in the order of
their records where OVER windows of different partitions follow one another.

A batch that is replayed must have the same rows, and a row that is retracted the same values. So a lot is not drawn
but computed: from the topic, partition and offset of the row's record, and from the place of the call in the job. They
travel with the rows as hidden columns, as far up as something is drawn. A row of a join comes from two records, but
one of a temporal or a lookup join from its left record, and an element of a list from a place in its record. A row of
an aggregate comes from none, nor does one that a changelog may take back by a later record: what is drawn there stays
as it is, and `validate` refuses it.

A window hands its rows on in the order of its shards, so that what comes behind it, in other shards, no longer knows
in which order rows of one time arrived: that of their records is the same however many shards there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from service.plan.expressions import Call, Column, Expression, Literal, deterministic, moved
from service.plan.nodes import (
    Field,
    Filter,
    IntervalJoin,
    Job,
    Join,
    LookupJoin,
    Node,
    Over,
    PairJoin,
    Project,
    Scan,
    TemporalJoin,
    Union,
    Unnest,
    WindowRows,
)
from service.plan.passes.hidden_columns import (
    Wide,
    beside_origin,
    hidden_columns,
    narrowed,
    one_text,
    origin_last,
    picked,
    text_of,
)
from service.plan.passes.row_order import ordered_windows, with_order
from service.plan.properties import carries_changes, unique_keys
from service.plan.table import ColumnKind, TableColumn
from service.plan.types import BIGINT, INT, STRING
from service.plan.walk import fields, in_order, inputs, shows_right, with_inputs

DRAWS: Mapping[str, str] = {
    "RAND": "(CAST(md5_number_lower({0}) >> 11 AS DOUBLE) / 9007199254740992.0)",
    # Version 4, variant 1 of RFC 9562.
    "UUID": "regexp_replace(md5({0}), '^(.{{8}})(.{{4}}).(.{{3}}).(.{{3}})(.{{12}})$', '\\1-\\2-4\\3-a\\4-\\5')",
}
"""The value of each function that draws, from a text that no other call for no other row has: 53 bits, or 118."""


def draw_from_origins(job: Job) -> Job:
    """Replace each call that draws, where its row has an origin, and order rows of one time by it in OVER windows of
    different partitions.

    >>> from tests.sql.outline import shown
    >>> print(shown("SELECT a1, RAND() AS r FROM a", draw_from_origins))
    project a1, r
      project a1, RAND(origin('a', partition, offset)), partition, offset
        scan a
    >>> calls = "LAG(who) OVER (PARTITION BY who ORDER BY ts), LAG(who) OVER (ORDER BY ts)"
    >>> print(shown(f"SELECT {calls} FROM pay", draw_from_origins))
    project LAG(who), LAG(who)
      project who, amount, id, ts, PROCTIME(), LAG(who), LAG(who)
        project who, amount, id, ts, at, LAG(who), LAG(who)
          project who, amount, id, ts, at, LAG(who), LAG(who), partition, offset
            over nothing on ts: LAG(who) rows None
              project who, amount, id, ts, at, LAG(who), partition, offset
                over who on ts: LAG(who) rows None
                  scan pay
    """
    nodes = in_order(job.sinks)
    ordered = ordered_windows(nodes)
    if not ordered and not any(_draws(e) for node in nodes for e in _expressions(node)):
        return job
    first = _Origins(ordered=ordered)
    for sink in job.sinks:
        first.plain(sink.input)
    # A table that needs its origins for one reader has them for all, or it would be read twice.
    second = _Origins(first.scans, ordered)
    return replace(job, sinks=tuple(replace(s, input=second.plain(s.input)) for s in job.sinks))


@dataclass(slots=True)
class _Origins:
    wide_scans: frozenset[int] = frozenset()
    ordered: frozenset[int] = frozenset()
    scans: frozenset[int] = frozenset()
    _plain: dict[int, tuple[Node, Node]] = field(default_factory=dict)
    _wide: dict[int, tuple[Node, Wide | None]] = field(default_factory=dict)
    _drawn: int = 0

    def plain(self, node: Node) -> Node:
        """`node` without hidden columns, and without draws where its rows have an origin."""
        if id(node) not in self._plain:
            self._plain[id(node)] = (node, self._as_plain(node))
        return self._plain[id(node)][1]

    def wide(self, node: Node) -> Wide | None:
        """`node` with its origins; None where its rows have none."""
        if id(node) not in self._wide:
            self._wide[id(node)] = (node, self._as_wide(node))
        return self._wide[id(node)][1]

    def _as_plain(self, node: Node) -> Node:
        drawing = any(map(_draws, _expressions(node))) or id(node) in self.ordered
        if drawing or (isinstance(node, Scan) and id(node) in self.wide_scans):
            wide = self.wide(node)
            if wide is not None:
                return narrowed(wide.node, node)
        return with_inputs(node, tuple(map(self.plain, inputs(node))))

    def _as_wide(self, node: Node) -> Wide | None:
        match node:
            case Scan():
                return self._scan(node)
            case Filter():
                below = self.wide(node.input)
                if below is None:
                    return None
                return Wide(
                    replace(node, input=below.node, condition=self._replaced(node.condition, below.origin)),
                    below.origin,
                )
            case Project():
                return self._project(node)
            case Union():
                return self._union(node)
            case WindowRows():
                made = self._behind(node)
                if made is None:
                    return None
                # Of the windows of one record, each is a row.
                start = Column(len(fields(node.input)), node.fields[len(fields(node.input))].type, "window_start")
                origin = Call("@", (made.origin, start), STRING, "concat_ws('@', {0}, epoch_us({1}))")
                return Wide(made.node, origin)
            case Over():
                return self._behind(node)
            case Join() | IntervalJoin():
                return self._join(node)
            case PairJoin():
                return self._pair(node)
            case TemporalJoin() | LookupJoin():
                return self._met(node)
            case Unnest():
                return self._unnested(node)
            case _:
                return None

    def _scan(self, scan: Scan) -> Wide | None:
        connector = scan.table.connector
        if carries_changes(scan.table) or connector.kind not in ("kafka", "datagen"):
            return None
        self.scans |= {id(scan)}
        wanted = [("offset", BIGINT)]
        if connector.kind == "kafka":
            wanted = [*([("topic", STRING)] if len(connector.topics) != 1 else []), ("partition", INT), *wanted]
        first, place = len(scan.table.columns), len(scan.columns)
        hidden = tuple(
            TableColumn(name, type_, ColumnKind.METADATA, nullable=False, metadata=name, virtual=True)
            for name, type_ in wanted
        )
        table = replace(scan.table, columns=(*scan.table.columns, *hidden))
        new = replace(
            scan,
            table=table,
            columns=(*scan.columns, *range(first, first + len(hidden))),
            fields=(*scan.fields, *(Field(c.name, c.type, nullable=False) for c in hidden)),
        )
        parts: list[Expression] = [Column(place + i, c.type, c.name) for i, c in enumerate(hidden)]
        if hidden[0].name != "topic":
            named = scan.table.name if connector.kind == "datagen" else connector.topics[0]
            parts.insert(0, Literal("'" + named.replace("'", "''") + "'", STRING, f"'{named}'"))
        return Wide(new, text_of(parts))

    def _project(self, node: Project) -> Wide | None:
        below = self.wide(node.input)
        if below is None:
            return None
        hidden = hidden_columns(below.node, node.input).and_own(below)
        count = len(node.expressions)
        drawn = tuple(self._replaced(e, below.origin) for e in node.expressions)
        return Wide(
            replace(
                node, input=below.node, expressions=(*drawn, *hidden.columns), fields=(*node.fields, *hidden.fields)
            ),
            moved(below.origin, {c.index: count + i for i, c in enumerate(hidden.columns)}),
        )

    def _union(self, node: Union) -> Wide | None:
        found = [self.wide(each) for each in node.inputs]
        below = [each for each in found if each is not None]
        if len(below) < len(found):
            return None
        # What stands in it twice is two rows.
        parts = [
            one_text(wide, narrow, Call("#", (wide.origin,), STRING, "{0} || '#" + str(i) + "'", constants=(i,)))
            for i, (wide, narrow) in enumerate(zip(below, node.inputs, strict=True))
        ]
        origin = Field("origin", STRING, nullable=False)
        new = replace(node, inputs=tuple(parts), fields=(*node.fields, origin))
        return Wide(new, Column(len(node.fields), STRING, "origin"))

    def _behind(self, node: WindowRows | Over) -> Wide | None:
        """A node that puts columns behind those of its input, with the hidden ones behind these."""
        below = self.wide(node.input)
        if below is None:
            return None
        hidden = hidden_columns(below.node, node.input)
        width, added, more = len(fields(node.input)), len(node.fields) - len(fields(node.input)), len(hidden.fields)
        ordered = id(node) in self.ordered
        input = with_order(below.node, hidden.columns) if ordered else below.node
        hidden_fields = fields(input)[width:]
        made = replace(node, input=input, fields=(*node.fields[:width], *hidden_fields, *node.fields[width:]))
        if ordered and isinstance(made, Over):
            made = replace(made, ties=tuple(range(width + len(hidden_fields) - more, width + len(hidden_fields))))
        answers = width + len(hidden_fields)
        places = [*range(width), *range(answers, answers + added), *range(width, width + more)]
        new = picked(made, places)
        moves = {i: i for i in range(width)} | {width + i: width + added + i for i in range(more)}
        return Wide(new, moved(below.origin, moves))

    def _join(self, node: Join | IntervalJoin) -> Wide | None:
        left = self.wide(node.left)
        if left is not None and not shows_right(node) and (node.residual is None or deterministic(node.residual)):
            return self._half_join(node, left)
        right = self.wide(node.right)
        if left is None or right is None:
            return None
        width = len(fields(node.left))
        sides = one_text(left, node.left, left.origin), one_text(right, node.right, right.origin)
        right_width = len(fields(node.right))
        residual = beside_origin(node.residual, width, right_width)
        origin = Field("origin", STRING)
        both = text_of([Column(width, STRING, "origin"), Column(width + 1 + right_width, STRING, "origin")])
        if residual is not None:
            residual = self._replaced(residual, both)
        seen = shows_right(node)
        right_fields = (*node.fields[width:], origin) if seen else ()
        made = replace(
            node, left=sides[0], right=sides[1], residual=residual, fields=(*node.fields[:width], origin, *right_fields)
        )
        if not seen:
            return origin_last(replace(made, fields=(*node.fields[:width], origin, *node.fields[width:])), width)
        new = picked(made, [*range(width), *range(width + 1, width + 1 + right_width), width, width + 1 + right_width])
        places = (width + right_width, width + right_width + 1)
        return Wide(new, text_of([Column(i, STRING, "origin") for i in places]))

    def _pair(self, node: PairJoin) -> Wide | None:
        """The halves of one row, which has one origin. Both are read from the rows with their origins, which are
        computed once."""
        left, right = self.wide(node.left), self.wide(node.right)
        if left is None or right is None:
            return None
        width = len(fields(node.left))
        made = replace(
            node,
            left=one_text(left, node.left, left.origin),
            right=narrowed(right.node, node.right),
            fields=(*node.fields[:width], Field("origin", STRING, nullable=False), *node.fields[width:]),
        )
        return origin_last(made, width)

    def _met(self, node: TemporalJoin | LookupJoin) -> Wide | None:
        """A join of which each left row comes out once, with what it has met: it comes from its own record."""
        one = isinstance(node, TemporalJoin) or any(k <= frozenset(node.right_keys) for k in unique_keys(node.right))
        left = self.wide(node.left)
        if left is None or not one or (node.residual is not None and _draws(node.residual)):
            return None
        width = len(fields(node.left))
        made = replace(
            node,
            left=one_text(left, node.left, left.origin),
            right=self.plain(node.right),
            residual=beside_origin(node.residual, width, len(fields(node.right))),
            fields=(*node.fields[:width], Field("origin", STRING, nullable=False), *node.fields[width:]),
        )
        return origin_last(made, width)

    def _unnested(self, node: Unnest) -> Wide | None:
        """The elements of a row come from its record, and each from a place in the list."""
        below = self.wide(node.input)
        if below is None:
            return None
        width, whole = len(fields(node.input)), len(node.fields)
        place = () if node.ordinality else (Field("ordinality", INT, nullable=node.outer),)
        made = replace(
            node,
            input=one_text(below, node.input, below.origin),
            ordinality=True,
            fields=(*node.fields[:width], Field("origin", STRING, nullable=False), *node.fields[width:], *place),
        )
        new = picked(made, [*range(width), *range(width + 1, whole + 1), width, len(made.fields) - 1])
        parts = Column(whole, STRING, "origin"), Column(whole + 1, INT, "ordinality")
        return Wide(new, Call("element", parts, STRING, "concat_ws('/', {0}, {1})"))

    def _half_join(self, node: Join | IntervalJoin, left: Wide) -> Wide:
        """A semi, anti or mark join, whose rows are left's and come from there alone."""
        width = len(fields(node.left))
        new = replace(
            node,
            left=one_text(left, node.left, left.origin),
            right=self.plain(node.right),
            residual=beside_origin(node.residual, width, len(fields(node.right))),
            fields=(*node.fields[:width], Field("origin", STRING), *node.fields[width:]),
        )
        return origin_last(new, width)

    def _replaced(self, expression: Expression, origin: Expression) -> Expression:
        """`expression` with a function of `origin` for everything in it that draws; what stands there twice is drawn
        twice."""
        if not isinstance(expression, Call) or deterministic(expression):
            return expression
        arguments = tuple(self._replaced(each, origin) for each in expression.arguments)
        if expression.deterministic:
            return replace(expression, arguments=arguments)
        if expression.name not in DRAWS:
            return expression
        if arguments:
            # Calls with one seed draw the same of a row, wherever they stand.
            template = DRAWS[expression.name].replace("{0}", "concat({0}, '?', {1})")
            return Call(expression.name, (origin, *arguments), expression.type, template)
        self._drawn += 1
        template = DRAWS[expression.name].replace("{0}", "concat({0}, '!" + str(self._drawn) + "')")
        return Call(expression.name, (origin,), expression.type, template, constants=(self._drawn,))


def _draws(expression: Expression) -> bool:
    return not deterministic(expression)


def _expressions(node: Node) -> tuple[Expression, ...]:
    match node:
        case Project(expressions=expressions):
            return expressions
        case Filter(condition=condition):
            return (condition,)
        case Join(residual=residual) | IntervalJoin(residual=residual):
            return () if residual is None else (residual,)
        case _:
            return ()
