"""The nodes of a logical plan: immutable, typed, each one a relation whose rows change over time.

Inside a plan every relation is a log of rows with weights, so its changelog mode is one of two: APPEND (only +1) or
RETRACT (any weight). Upsert streams exist only outside: `Normalize` turns an upsert source into a retracting relation,
and a sink consolidates by its key. Positions are indexes into the input's fields.

A module holds a family of nodes. What they share with their kernels (frames, rankings, windows) is the operators' own.
"""

from operators.joins.kinds import JoinKind
from operators.over.calls import NEIGHBOURS, NOT_AGGREGATES, Frame
from operators.ranking.ranking import OrderBy, RankFunction
from operators.rows.set_operation import SetKind
from operators.windows.firing import Firing
from operators.windows.shapes import Attached, Cumulate, Hop
from service.plan.nodes.aggregates import Aggregate, AggregateCall, OverCall
from service.plan.nodes.job import Job, Sink
from service.plan.nodes.joins import AnyJoin, IntervalJoin, Join, LookupJoin, PairJoin, TemporalJoin, WindowJoin
from service.plan.nodes.over import Over
from service.plan.nodes.ranking import MOST, TimeSort, TopN
from service.plan.nodes.relation import Field, Mode, Place
from service.plan.nodes.rows import Filter, Project, Unnest
from service.plan.nodes.sets import SetOperation, Union
from service.plan.nodes.sources import Normalize, Scan, Values
from service.plan.nodes.stream_windows import (
    CappedSessionShape,
    CountShape,
    SlidingShape,
    StateShape,
    StreamShape,
    StreamWindow,
)
from service.plan.nodes.windows import Session, Tumble, Window, WindowAggregate, WindowRows

NoInput = Scan | Values
OneInput = (
    Normalize
    | Project
    | Filter
    | WindowRows
    | WindowAggregate
    | StreamWindow
    | Aggregate
    | Over
    | TopN
    | TimeSort
    | Unnest
)
TwoInputs = Join | IntervalJoin | WindowJoin | TemporalJoin | LookupJoin | PairJoin | SetOperation
Node = NoInput | OneInput | Union | TwoInputs
"""By what they read: nothing, `input`, `inputs`, or `left` and `right`."""

__all__ = [
    "MOST",
    "NEIGHBOURS",
    "NOT_AGGREGATES",
    "Aggregate",
    "AggregateCall",
    "AnyJoin",
    "Attached",
    "CappedSessionShape",
    "CountShape",
    "Cumulate",
    "Field",
    "Filter",
    "Firing",
    "Frame",
    "Hop",
    "IntervalJoin",
    "Job",
    "Join",
    "JoinKind",
    "LookupJoin",
    "Mode",
    "NoInput",
    "Node",
    "Normalize",
    "OneInput",
    "OrderBy",
    "Over",
    "OverCall",
    "PairJoin",
    "Place",
    "Project",
    "RankFunction",
    "Scan",
    "Session",
    "SetKind",
    "SetOperation",
    "Sink",
    "SlidingShape",
    "StateShape",
    "StreamShape",
    "StreamWindow",
    "TemporalJoin",
    "TimeSort",
    "TopN",
    "Tumble",
    "TwoInputs",
    "Union",
    "Unnest",
    "Values",
    "Window",
    "WindowAggregate",
    "WindowJoin",
    "WindowRows",
]
