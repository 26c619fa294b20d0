"""Sessions with aggregates that follow the order in which rows arrived."""

from __future__ import annotations

from operators.aggregates.functions import follows_arrival
from operators.windows.shapes import Attached
from service.plan.nodes import Job, Mode, Node, Session, WindowAggregate, WindowRows
from service.plan.properties import mode
from service.plan.walk import fields, rewrite


def number_session_rows(job: Job) -> Job:
    """Aggregate FIRST_VALUE, LAST_VALUE and lists of a session over its rows as it closes.

    Its totals are those of pieces of it, which are put together in the order of their times; and a session that is
    still open may be parted where rows are retracted. Of a closed one all rows are there, in the order in which they
    came.

    >>> from tests.sql.outline import shown
    >>> print(shown(
    ...     "SELECT name, FIRST_VALUE(id) AS f FROM shelf GROUP BY name, SESSION(ts, INTERVAL '1' MINUTE)",
    ...     number_session_rows))
    project name, FIRST_VALUE(id)
      Attached(start=3, end=4) on window_time in UTC by name: FIRST_VALUE(id)
        rows of Session(gap=60000, partition=(0,), numbered=True) on ts in UTC
          project name, id, ts
            normalize id
              scan shelf
    """
    return rewrite(job, lambda node, _: _numbered(node) if isinstance(node, WindowAggregate) else node)


def _numbered(node: WindowAggregate) -> Node:
    append = mode(node.input) is Mode.APPEND
    calls = node.aggregates
    if not isinstance(node.window, Session) or not any(
        follows_arrival(call.function, distinct=call.distinct, append=append) for call in calls
    ):
        return node
    width = len(fields(node.input))
    rows = WindowRows(
        input=node.input,
        time=node.time,
        window=Session(node.window.gap, node.keys, numbered=not append),
        fields=(*fields(node.input), *node.fields[-3:]),
        zone=node.zone,
        place=node.place,
    )
    return WindowAggregate(
        input=rows,
        time=width + 2,
        window=Attached(width, width + 1),
        keys=node.keys,
        aggregates=node.aggregates,
        fields=node.fields,
        zone=node.zone,
        firing=node.firing,
        place=node.place,
    )
