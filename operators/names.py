"""The names of the columns of kernels, in one place: of blocks, of state, of partials, and of rows within a batch.

Columns that users see are numbered (c0, c1, ...), as names of users are not a kernel's business. Hidden columns of
blocks and of state begin with an underscore. A name that only one statement reads stands in that statement.
"""

from __future__ import annotations

from collections.abc import Iterable

WEIGHT = "_weight"
"""The hidden column (BIGINT) of every block of changes: +n inserts a row n times, -n takes it back n times.

A row of weight 0 was written again unchanged: it changes no answer, but with a time to live it keeps state alive, here
and downstream, and a sink may show it as an update to the same row.
"""

REASON = "_reason"
"""Of a row that could not be computed: why (VARCHAR). Of one that was found outside for a lookup join: why it cannot be
read, NULL if it can."""

# -- state

SORT_KEY = "_sort_key"
"""The hidden column that a block is sorted by: the hash of a row's key (UBIGINT), or its time (BIGINT, ms)."""

TOMBSTONE = "_tombstone"
"""Whether a key is deleted (BOOLEAN)."""

WRITTEN = "_written"
"""In state with a time to live: the processing time (BIGINT, ms) at which a row was last written."""

COUNT = "_count"
"""How often a row is there (BIGINT)."""

SINCE = "_since"
"""The number of the batch in which the count of a row last grew (BIGINT)."""

SEQUENCE = "_sequence"
"""The number of a row's arrival in its shard (BIGINT), which orders rows that tie."""

PLACE = "_place"
"""The place of a row (BIGINT): in the state of a ranking the rank at which it was last seen, as rows before it may be
expired silently; in a batch of windows by partition, which of the partitions that the batch touches; in one
of changes that wait for their time, that of a change among them; in a temporal join, that of a version."""

PARTITION = "_partition"
"""The hash of a partition (UBIGINT) that is to be looked at again."""

LEFT_COPIES = "_left"
RIGHT_COPIES = "_right"
"""How often a row is there on either side of INTERSECT and EXCEPT (BIGINT)."""

DEGREE = "_degree"
"""How many rows of the other side of a join a row matches (BIGINT)."""

DOUBTS = "_doubts"
"""How many rows of the other side of a join a row perhaps matches, as the condition cannot be computed (BIGINT)."""

MATCHES = "_times"
"""How often a row of a lookup join has met a row (BIGINT); 0 of one that has met none and is not shown."""

MET = "_met"
"""Whether there was a version that a row of a temporal join has met (BOOLEAN)."""

CAME = "_came"
LEFT_CAME = "_left_came"
RIGHT_CAME = "_right_came"
"""Whether a key of a pair join has its row, and that of either side (BOOLEAN)."""

GONE = "_gone"
"""Whether the row of a version no longer exists from its time on (BOOLEAN)."""

NUMBERS = "numbers"
"""The numbers of the arrivals of a value, the oldest first (BIGINT[])."""

TIME = "_time"
"""The time of a row (BIGINT, ms) beside its visible columns."""

NUMBER = "_number"
"""The number of a row among those of its partition (BIGINT)."""

ORDER_TIME = "_t"
"""The time of a row of an OVER window (BIGINT, ms), which RANGE frames are ordered by."""

# -- rows beside what the state knows of them

PREVIOUS = "previous_"
"""What the names of the columns that were found for a row begin with."""

FOUND = "_found"
"""Whether anything was found for a row (BOOLEAN)."""

# -- one batch

AT = "_at"
"""The number of a row in its block, from 0 (BIGINT): what a statement answers is brought back to the rows by it."""

ORDER_NUMBER = "_n"
"""The number of a row of an OVER window by time, then arrival (BIGINT), which ROWS frames are ordered by; those
that are due from 0 on."""

AHEAD = "_ahead"
"""Whether a row of an OVER window is not answered yet (BOOLEAN)."""

ROWS = "_rows"
"""How many rows a key has in the batch (BIGINT)."""

GROUP = "_group"
"""The number of the group of a row, from 0 (BIGINT)."""

# -- partials

TAG = "tag"
"""What a partial stands for (TINYINT): 0 for rows, i + 1 for the values of the sets of group i."""

VALUE = "v"
"""A value of a set, once the sets are apart."""

TIMES = "n"
"""How often a value has come, less how often it has gone (BIGINT)."""

START = "s"
"""The start of a slice, or the first time of a piece of a session (BIGINT, ms). Of windows that rows carry: the end,
which is what they close by."""

END = "e"
"""The last time of a piece of a session (BIGINT, ms)."""

ATTACHED_START = "w"
"""The start of a window that rows carry (BIGINT, ms)."""

WINDOW_START = "ws"
WINDOW_END = "we"
"""The start and the end of a window (BIGINT, ms)."""

WINDOW = "w"
"""The number of a window among those that are answered together (BIGINT)."""

SPOT = "t"
"""The time of a row that is put to a session (BIGINT, ms)."""

FIRST = "first"
LAST = "last"
"""The times of the first and of the last row of a session (BIGINT, ms)."""


def column(position: int) -> str:
    """Return the name of the visible column at `position`.

    >>> column(2)
    'c2'
    """
    return f"c{position}"


def columns(positions: Iterable[int]) -> list[str]:
    """Return the names of the visible columns at `positions`."""
    return [column(position) for position in positions]


def key_columns(count: int) -> list[str]:
    """Return the names of the keys of a partial: k0, k1, ..."""
    return [f"k{i}" for i in range(count)]


def old_answers(count: int) -> list[str]:
    """Return the names of the answers of aggregates before a batch, or of the only ones: o0, o1, ..."""
    return [f"o{i}" for i in range(count)]


def new_answers(count: int) -> list[str]:
    """Return the names of the answers of aggregates after a batch: n0, n1, ..."""
    return [f"n{i}" for i in range(count)]


def value_of(at: int) -> str:
    """Return the name of the column of a partial that holds a value of set `at`."""
    return f"v{at}"


def times_of(place: int) -> str:
    """Return the name of the column of a partial that counts a value for the set at `place` in its group.

    >>> times_of(0), times_of(1)
    ('n', 'n_1')
    """
    return TIMES if place == 0 else f"{TIMES}_{place}"
