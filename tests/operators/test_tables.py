"""State tables against dictionaries and lists: what was written is read, whichever keys share a hash."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from operators.names import FOUND, PREVIOUS
from operators.state.operator_state import State
from operators.state.tables.grouped import GroupedTable, numbers_of
from operators.state.tables.keyed import KeyedTable
from operators.state.tables.logged import LoggedTable
from operators.state.tables.numbered import NumberedRows, NumberedTable
from operators.state.tables.table import StateTable, specs_of
from operators.state.tables.timed import HashQueue, TimedTable
from tests.operators.properties import SQL, Row
from tests.operators.shared_hashes import HALVES, share_hashes

ROWS = pa.schema([("group", pa.string()), ("key", pa.int64()), ("value", pa.string())])
EVERYTHING = 2**64 - 1
LIFE = 5
"""The time to live of tables that have one, in batches."""

each_hash = pytest.mark.parametrize("mask", [EVERYTHING, HALVES, 0], ids=["own", "shared", "one"])
each_ttl = pytest.mark.parametrize("ttl", [0, LIFE])


def opened(*tables: StateTable | HashQueue) -> State:
    return State.open(specs_of(*tables), None, lambda name: pa.py_buffer(b""))


class Reopened:
    """A state that is written and opened again after each batch."""

    def __init__(self, *tables: StateTable | HashQueue) -> None:
        self._tables = tables
        self._blocks: dict[str, pa.Buffer] = {}
        self.state = opened(*tables)

    def seal(self) -> None:
        sealed = self.state.seal()
        self._blocks |= sealed.added
        self.state = State.open(specs_of(*self._tables), sealed.manifest, self._blocks.__getitem__)

    @property
    def rows(self) -> int:
        return sum(size.rows for size in self.state.table_sizes().values())


def table_of(rows: list[Row], schema: pa.Schema = ROWS) -> pa.Table:
    return pa.table([[row[i] for row in rows] for i in range(len(schema))], schema=schema)


def tuples(table: pa.Table, names: list[str]) -> list[Row]:
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def forgotten(old: set[Row], found: set[Row], mask: int) -> set[Row]:
    """Those of the `old` that were not found: rows that share a place with a younger one may live on."""
    assert mask != EVERYTHING or not old & found
    return old - found


@each_hash
@each_ttl
@pytest.mark.parametrize("group", [None, (0,)], ids=["alone", "in groups"])
def test_a_keyed_table_is_a_dictionary(monkeypatch, mask: int, ttl: int, group: tuple[int, ...] | None):
    share_hashes(monkeypatch, mask)
    rng = random.Random(mask % 97)
    table = KeyedTable(name="t", schema=ROWS, keys=2, group=group, ttl=ttl)
    kept = Reopened(table)
    model: dict[tuple[str, int], str] = {}
    last: dict[tuple[str, int], int] = {}
    for batch in range(60):
        table.expire(kept.state, batch)
        old = {k for k in model if ttl and last[k] <= batch - ttl}
        keys = list({(rng.choice("abc"), rng.randrange(8)): None for _ in range(rng.randrange(1, 9))})
        pairs = table.read(kept.state, table_of([(*k, f"{batch}") for k in keys]), SQL)
        names = pairs.rows.column_names
        assert (names[:3], names[-1]) == (ROWS.names, FOUND)
        found = tuples(pairs.rows, ["group", "key", PREVIOUS + "value", FOUND])
        gone = forgotten(old & {*keys}, {(group, key) for group, key, _, was in found if was}, mask)
        model = {k: v for k, v in model.items() if k not in gone}
        assert sorted(found) == sorted((*k, model.get(k), k in model) for k in keys)
        stays = np.array([rng.random() < 0.7 for _ in keys])
        changed = np.array([rng.random() < 0.7 or not was for *_, was in found])
        values = [f"{batch}" if differs else was for (*_, was, _), differs in zip(found, changed, strict=True)]
        rows = pairs.rows.set_column(2, "value", pa.array(values, pa.string()))
        table.write(kept.state, pairs, rows, batch, stays=stays | ~changed, changed=changed)
        for (*key, _, _), value, stay, differs in zip(found, values, stays, changed, strict=True):
            model[(*key,)], last[(*key,)] = value, batch
            if differs and not stay:
                del model[(*key,)]
        kept.seal()
        assert ttl or kept.rows == len(model)
    if group is not None:
        everything = table.read_groups(kept.state, table_of([("a", 0, "")]))
        read = {(group, key): value for group, key, value in tuples(everything, ROWS.names) if group == "a"}
        gone = forgotten({k for k in model if k[0] == "a" and ttl and last[k] <= 59 - ttl}, {*read}, mask)
        assert read == {k: v for k, v in model.items() if k[0] == "a" and k not in gone}


@each_hash
def test_rows_beside_those_of_a_batch_are_written_where_they_change(monkeypatch, mask: int):
    share_hashes(monkeypatch, mask)
    table = KeyedTable(name="t", schema=ROWS, keys=2, group=(0,), ttl=LIFE)
    state = opened(table)
    rows = table_of([(group, key, "old") for group in "ab" for key in range(4)])
    pairs = table.read(state, rows, SQL)
    table.write(state, pairs, pairs.rows, 0)
    pairs = table.read(state, table_of([("a", 0, "new")]), SQL)
    beside = table.read_beside(state, pairs, table.hash(state, pairs.rows, (0,)))
    others = tuples(beside, ["group", "key"])
    assert {key for key in others if key[0] == "a"} == {("a", 1), ("a", 2), ("a", 3)}
    values = ["new"] + ["new" if key == ("a", 1) else "old" for key in others]
    written = table_of([("a", 0, ""), *((*key, "") for key in others)])
    written = written.set_column(2, "value", pa.array(values))
    changed = np.array([value == "new" for value in values])
    table.write_beside(state, pairs, beside, written, 3, stays=np.ones(len(values), np.bool_), changed=changed)
    # Rows that share a hash live on with those that were written.
    for now, expected in ((4, 8), (LIFE, {EVERYTHING: 2, HALVES: 4, 0: 8}[mask]), (LIFE + 3, 0)):
        table.expire(state, now)
        found = table.read(state, table_of([(group, key, "") for group in "ab" for key in range(4)]), SQL)
        there = found.rows.filter(found.rows.column(FOUND))
        assert there.num_rows == expected
        assert {(*k, v) for *k, v in tuples(there, ["group", "key", PREVIOUS + "value"]) if v == "new"} == (
            {("a", 0, "new"), ("a", 1, "new")} if expected else set()
        )


@each_hash
@each_ttl
@pytest.mark.parametrize("members", [None, 3], ids=["whole", "members"])
def test_a_grouped_table_is_a_dictionary_of_groups(monkeypatch, mask: int, ttl: int, members: int | None):
    share_hashes(monkeypatch, mask)
    rng = random.Random(mask % 97)
    table = GroupedTable(name="t", schema=ROWS, group=(0,), members=members, ttl=ttl)
    kept = Reopened(table)
    model: dict[tuple[str, int, str], int] = {}
    for batch in range(60):
        table.expire(kept.state, batch)
        old = {row for row, stamp in model.items() if ttl and stamp <= batch - ttl}
        groups = rng.sample("abcde", rng.randrange(1, 4))
        found = table.read(kept.state, table.hashes(kept.state, table_of([(g, 0, "") for g in groups])))
        before = tuples(found, ROWS.names)
        gone = forgotten({row for row in old if row[0] in groups}, {*before}, mask if members else HALVES)
        model = {row: stamp for row, stamp in model.items() if row not in gone}
        assert {row for row in before if row[0] in groups} == {row for row in model if row[0] in groups}
        new = table.placed(kept.state, table_of([(g, batch, "x") for g in groups for _ in range(rng.randrange(2))]))
        rows = pa.concat_tables([found, new], promote_options="default")
        all_ = tuples(rows, ROWS.names)
        came = np.arange(len(all_)) >= found.num_rows
        leaves = ~came & np.array([row[0] in groups and rng.random() < 0.4 for row in all_], np.bool_)
        table.write(kept.state, found, rows, batch, stays=~leaves, changed=came | leaves, renewed=came)
        for row, come, leave in zip(all_, came, leaves, strict=True):
            if leave:
                del model[row]
            elif come:
                model[row] = batch
        kept.seal()
        assert ttl or kept.rows == len(model)


@each_hash
def test_of_a_keyed_table_only_what_is_renewed_lives_on(monkeypatch, mask: int):
    share_hashes(monkeypatch, mask)
    table = KeyedTable(name="t", schema=ROWS, keys=2, ttl=LIFE)
    state = opened(table)
    rows = table_of([("a", key, "x") for key in range(6)])
    pairs = table.read(state, rows, SQL)
    table.write(state, pairs, pairs.rows, 0)
    pairs = table.read(state, rows, SQL)
    renewed = pairs.rows.column("key").to_numpy() == 2
    table.write(state, pairs, pairs.rows, 3, changed=np.zeros(6, np.bool_), renewed=renewed)
    table.expire(state, LIFE)
    found = table.read(state, rows, SQL).rows
    alive = set(found.filter(found.column(FOUND)).column("key").to_pylist())
    assert alive == {2} if mask == EVERYTHING else alive >= {2}


@each_hash
def test_rows_of_a_group_may_have_numbers_in_place_of_members(monkeypatch, mask: int):
    share_hashes(monkeypatch, mask)
    table = GroupedTable(name="t", schema=ROWS, group=(0,), members=3)
    state = opened(table)
    for batch in range(3):
        rows = table_of([(group, 1, "x") for group in "abab"])
        table.write(state, None, table.numbered(state, rows, 4 * batch))
    assert table.read_all(state).num_rows == 12
    kept = table.read(state, table.hashes(state, table_of([("a", 0, "")])))
    mine = np.array(kept.column("group").to_pylist()) == "a"
    assert sorted(numbers_of(kept)[mine].tolist()) == [0, 2, 4, 6, 8, 10]
    table.write(state, kept, kept, stays=~mine, changed=mine)
    assert table.read_all(state).column("group").to_pylist() == ["b"] * 6


@pytest.mark.parametrize("keyed", [False, True], ids=["one", "keyed"])
@pytest.mark.parametrize("start", [1, 2**26 - 20], ids=["from one", "where numbers go round"])
def test_sequences_lose_their_first_rows_and_are_read_by_ranges(keyed: bool, start: int):
    rng = random.Random(start)
    table = NumberedTable(name="t", schema=ROWS, keyed=keyed)
    kept = Reopened(table)
    count = 3 if keyed else 1
    places = table.new_places(np.arange(count, dtype=np.uint64) << np.uint64(60), 5)
    low, following = [start] * count, [start] * count
    for batch in range(30):
        first = [rng.randrange(a, b + 1) for a, b in zip(low, following, strict=True)]
        read = table.read(kept.state, places, np.array(first), np.array(following) - 1)
        there = sorted(zip(read.owners.tolist(), read.numbers.tolist(), strict=True))
        assert there == [(i, number) for i in range(count) for number in range(first[i], following[i])]
        assert read.rows.column("key").to_pylist() == read.numbers.tolist()
        came = [(i, following[i] + n) for i in range(count) for n in range(rng.randrange(5))]
        for i, _ in came:
            following[i] += 1
        upto = [rng.randrange(a, b + 1) for a, b in zip(low, first, strict=True)]
        gone = [(i, number) for i in range(count) for number in range(low[i], upto[i])]
        low = upto
        owners, numbers = (np.array([each[at] for each in came], np.int64) for at in (0, 1))
        rows = NumberedRows(table_of([("g", number, str(batch)) for _, number in came]).cast(ROWS), owners, numbers)
        out = places[[i for i, _ in gone]], np.array([number for _, number in gone], np.int64)
        table.write(kept.state, rows, out, places)
        kept.seal()
        assert kept.rows == sum(following) - sum(low)


@each_hash
def test_rows_of_a_log_are_there_as_often_as_they_came(monkeypatch, mask: int):
    share_hashes(monkeypatch, mask)
    table = LoggedTable(name="t", schema=ROWS, key=(0,), ttl=LIFE)
    state = opened(table)
    for batch in range(10):
        table.add(state, table_of([("a", 1, "x"), ("b", batch, "y")]), batch)
    table.expire(state, 10)
    rows = table.read(state, table.hashes(state, table_of([("a", 0, ""), ("a", 1, "")])))
    assert rows.schema == ROWS
    assert Counter(row for row in tuples(rows, ROWS.names) if row[0] == "a") == {("a", 1, "x"): 4}


def test_a_row_that_waits_is_taken_once_in_the_order_of_times():
    rng = random.Random(1)
    table, queue = TimedTable(name="t", schema=ROWS, key=("group",)), HashQueue(name="q")
    kept = Reopened(table, queue)
    waiting: list[tuple[int, int]] = []
    for batch in range(40):
        times = sorted(rng.randrange(batch * 10 + 1, batch * 10 + 100) for _ in range(5))
        rng.shuffle(times)
        table.add(kept.state, table_of([("g", t, str(batch)) for t in times]), np.array(times))
        queue.push(kept.state, np.array(times, np.uint64), np.array(times))
        waiting += [(t, batch) for t in times]
        upto = batch * 10 + 10
        due, of = table.timed_between(kept.state, batch * 10, upto)
        taken = table.take(kept.state, upto)
        assert (due, of.tolist()) == (taken, taken.column("key").to_pylist())
        assert taken.schema == ROWS
        assert [(t, int(b)) for t, b in tuples(taken, ["key", "value"])] == sorted(w for w in waiting if w[0] <= upto)
        assert queue.pop(kept.state, upto).tolist() == taken.column("key").to_pylist()
        assert table.take(kept.state, upto).num_rows == 0
        waiting = [w for w in waiting if w[0] > upto]
        kept.seal()
        assert kept.rows == 2 * len(waiting)


def test_rows_expire_by_a_column_of_their_own_and_stay_deleted():
    table = KeyedTable(name="t", schema=ROWS, keys=2, expires_by="key")
    state = opened(table)
    rows = table_of([("a", time, "x") for time in (1, 5, 9)])
    pairs = table.read(state, rows, SQL)
    table.write(state, pairs, pairs.rows)
    gone = table.read(state, rows.slice(1, 1), SQL)
    table.write(state, gone, gone.rows, stays=np.array([False]))
    for upto, there in ((0, [1, 9]), (1, [9]), (8, [9]), (9, [])):
        table.expire_upto(state, upto)
        pairs = table.read(state, rows, SQL).rows
        assert sorted(pairs.filter(pairs.column(FOUND)).column("key").to_pylist()) == there
