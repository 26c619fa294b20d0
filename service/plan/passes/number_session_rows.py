"""Sessions of rows that may be taken back, with aggregates that ask which row came first or last."""

from __future__ import annotations

from operators.aggregates.functions import ENDS
from operators.windows.shapes import Attached
from service.plan.nodes import Job, Mode, Node, Session, WindowAggregate, WindowRows
from service.plan.properties import mode
from service.plan.walk import fields, rewrite


def number_session_rows(job: Job) -> Job:
    """Aggregate FIRST_VALUE and LAST_VALUE of a session over its rows as it closes, where rows may be taken back.

    A session that is still open may be parted, so that its first and last values have no totals that could be merged;
    of a closed one all rows are there, in the order in which they came.

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
    if not isinstance(node.window, Session) or not any(call.function in ENDS for call in node.aggregates):
        return node
    if mode(node.input) is Mode.APPEND:
        return node
    width = len(fields(node.input))
    rows = WindowRows(
        input=node.input,
        time=node.time,
        window=Session(node.window.gap, node.keys, numbered=True),
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
