"""A changed query on the checkpoint of the one before: what becomes of its state, and how it goes on.

Batches are done as a task of a level does them, on the files of a checkpoint; there is no JVM and no Kafka.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from operators.names import WEIGHT
from operators.sql import Sql
from operators.time import MIN_TIME
from service.checkpoint.blocks import Manifest
from service.checkpoint.files import FolderFiles
from service.checkpoint.small_files import QUERY, SmallFiles
from service.checkpoint.version import Version
from service.commands.upgrade_check import CheckedUpgrade
from service.deployment.upgrading import recovered_query, remembered, upgrade_of, with_known_ids
from service.formats.contract import RECORD, Decoder
from service.formats.registry import decoder
from service.plan.lowering.lower import compile_job
from service.plan.program import Program, Source
from service.plan.source_ids import going_on
from service.plan.upgrade import Upgrade, upgrade
from service.runtime.envelope import EGRESS, Envelope, Kind, table_of
from service.runtime.ingest import Ingest
from service.runtime.layout import Layout
from service.runtime.shard_operators import READABLE, ShardOperators, StateMismatch
from service.runtime.topology import Topology
from service.runtime.watermarks import Tick, channel_name
from service.sql.pipeline import read
from tests.spark.levels_on_files import LevelsOnFiles, computing_with

KAFKA = "'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'"
UPSERTS = "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'"
QUERY_BEFORE = f"""
SET 'table.exec.state.ttl' = '1 d';
CREATE TABLE orders (u STRING, amount BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at - INTERVAL '2' SECOND)
WITH ({KAFKA}, 'topic' = 'orders');
CREATE TABLE users (u STRING, city STRING) WITH ({KAFKA}, 'topic' = 'users');
CREATE TABLE totals (u STRING, total BIGINT, PRIMARY KEY (u) NOT ENFORCED) WITH ({UPSERTS}, 'topic' = 'totals');
CREATE TABLE cities (city STRING, n BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'cities', 'format' = 'debezium-json');
CREATE TABLE best (u STRING, total BIGINT) WITH ('connector' = 'kafka', 'topic' = 'best', 'format' = 'debezium-json');
CREATE TABLE minutes (u STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'minutes', 'format' = 'json');
CREATE VIEW paid AS SELECT u, amount FROM orders WHERE amount > 0;
EXECUTE STATEMENT SET BEGIN
INSERT INTO totals SELECT u, SUM(amount) AS total FROM paid GROUP BY u;
INSERT INTO cities SELECT city, COUNT(*) FROM paid JOIN users ON paid.u = users.u GROUP BY city;
INSERT INTO best SELECT u, total FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY total DESC) AS r FROM (SELECT u, SUM(amount) AS total FROM paid GROUP BY u))
  WHERE r <= 2;
INSERT INTO minutes SELECT u, COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '10' SECOND))
  GROUP BY u, window_start, window_end;
END;
"""
ALL = ("group_by_1", "join_1", "group_by_2", "top_n_1", "window_aggregate_1")
OF_PAID = ALL[:4]


class Change(NamedTuple):
    """A change of the query: what is replaced by what; the operators whose state is not kept and what becomes of it; a
    part of each reason for which it is refused."""

    replaced: Mapping[str, str]
    others: Mapping[str, str] = {}
    refused: Sequence[str] = ()


GROUP = "SELECT u, SUM(amount) AS total FROM paid GROUP BY u;"
BEST = QUERY_BEFORE[QUERY_BEFORE.index("INSERT INTO best") : QUERY_BEFORE.index("INSERT INTO minutes")]
CITIES = "INSERT INTO cities SELECT city, COUNT(*) FROM paid JOIN users ON paid.u = users.u GROUP BY city;\n"
VISITS = f"""CREATE TABLE visits (u STRING, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH ({KAFKA}, 'topic' = 'visits');
CREATE TABLE more WITH ('topic' = 'more') LIKE minutes;
EXECUTE STATEMENT SET BEGIN
"""

CHANGES = {
    "a filter behind the last operator with state": Change(
        {"INSERT INTO totals": "INSERT INTO totals SELECT * FROM (", "GROUP BY u;\n": "GROUP BY u) WHERE total > 20;\n"}
    ),
    "a projection behind it": Change({"totals SELECT u, SUM(amount)": "totals SELECT u, SUM(amount) * 2 + 1"}),
    "one more column of a sink": Change(
        {
            "(u STRING, total BIGINT, PRIMARY": "(u STRING, total BIGINT, half BIGINT, PRIMARY",
            "totals SELECT u, SUM(amount) AS total FROM": "totals SELECT u, SUM(amount), SUM(amount) / 2 FROM",
        }
    ),
    "a filter behind a window": Change({"window_end;\nEND": "window_end HAVING COUNT(*) > 1;\nEND"}),
    "a view of another name": Change({"paid": "positive"}),
    "another way to write it": Change(
        {"SELECT u, SUM(amount) AS total FROM paid": "SELECT p.u,\n  SUM(p.amount) AS total FROM paid AS p -- of all\n"}
    ),
    "a longer time to live": Change({"'1 d'": "'2 d'"}),
    "a shorter time to live": Change({"'1 d'": "'20 h'"}),
    "a setting that changes no answer": Change({"SET 'table": "SET 'pipeline.object-reuse' = 'true';\nSET 'table"}),
    "one more INSERT, of rows that are only added": Change(
        {
            "EXECUTE": "CREATE TABLE more WITH ('topic' = 'more') LIKE minutes;\nEXECUTE",
            "END;": "INSERT INTO more SELECT u, amount FROM paid WHERE amount > 5; END;",
        }
    ),
    "one more INSERT, of windows that are kept": Change(
        {
            "EXECUTE": "CREATE TABLE more WITH ('topic' = 'more') LIKE minutes;\nEXECUTE",
            "END;": "INSERT INTO more SELECT u, 2 * COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at),"
            " INTERVAL '10' SECOND)) GROUP BY u, window_start, window_end; END;",
        }
    ),
    "an INSERT and its operator are gone": Change({BEST: ""}, {"top_n_1 of the query before": "gone"}),
    "no time to live": Change(
        {"'1 d'": "'0 s'"},
        dict.fromkeys(OF_PAID, "cannot be kept"),
        ["had a TTL and have none"] * 4,
    ),
    "another filter below": Change(
        {"amount > 0": "amount > 5"},
        dict.fromkeys(OF_PAID, "cannot be kept"),
        ["has new inputs: .*5.*it has lost inputs: filter"] * 4,
    ),
    "another condition of a join": Change(
        {"ON paid.u = users.u": "ON paid.u = users.u AND paid.u <> 'a'"},
        dict.fromkeys(("join_1", "group_by_2"), "cannot be kept"),
        ["computes or keeps something else", "has new inputs: inner join .*'a'"],
    ),
    "a filter on a key, which is pushed down": Change(
        {"GROUP BY city;": "GROUP BY city HAVING city <> 'a';"},
        dict.fromkeys(("join_1", "group_by_2"), "cannot be kept"),
        ["has new inputs: .*'a'"] * 2,
    ),
    "another aggregate": Change(
        {"SUM(amount)": "MAX(amount)"},
        dict.fromkeys(("group_by_1", "top_n_1"), "cannot be kept"),
        ["computes or keeps something else", "has new inputs: aggregate by .u.: MAX"],
    ),
    "another window": Change(
        {"INTERVAL '10' SECOND))": "INTERVAL '20' SECOND))"},
        {"window_aggregate_1": "cannot be kept"},
        ["window_aggregate_1 .*computes or keeps something else"],
    ),
    "another watermark": Change(
        {"at - INTERVAL '2' SECOND": "at - INTERVAL '3' SECOND"},
        dict.fromkeys(ALL, "cannot be kept"),
        ["table orders is declared differently"] * 5,
    ),
    "another time zone": Change(
        {"SET 'table": "SET 'table.local-time-zone' = 'Europe/Paris';\nSET 'table"},
        dict.fromkeys(ALL, "cannot be kept"),
        ["time zone was UTC and is Europe/Paris"] * 5,
    ),
    "an operator is new": Change(
        {
            "cities SELECT city, COUNT(*)": "cities SELECT DISTINCT 'x', c FROM (SELECT COUNT(*) AS c",
            "GROUP BY city;": "GROUP BY city);",
        },
        {"group_by_3": "new"},
        ["group_by_3 .*no state for it", "cities is written differently.*tells rows apart"],
    ),
    "a sink with updates is new": Change(
        {
            "EXECUTE": "CREATE TABLE more WITH ('topic' = 'more') LIKE best;\nEXECUTE",
            "END;": f"INSERT INTO more {GROUP} END;",
        },
        {},
        ["table more is newly written"],
    ),
    "another topic is written": Change(
        {"'topic' = 'totals'": "'topic' = 'sums'"}, {}, ["totals is written differently.*topic was totals and is sums"]
    ),
    "another format is written": Change(
        {"'cities', 'format' = 'debezium-json'": "'cities', 'format' = 'changelog-json'"},
        {},
        ["cities is .*format was debezium-json and is changelog-json"],
    ),
    "another topic is read": Change(
        {"'topic' = 'users'": "'topic' = 'people'"},
        dict.fromkeys(("join_1", "group_by_2"), "cannot be kept"),
        ["users is read from people, and was from users: give it another name", *["users is declared differently"] * 2],
    ),
    "a source is gone": Change(
        {CITIES: ""}, dict.fromkeys(("join_1 of the query before", "group_by_2 of the query before"), "gone")
    ),
    "a source is new, and read before the others": Change(
        {"EXECUTE STATEMENT SET BEGIN": VISITS + "INSERT INTO more SELECT u, 1 FROM visits;"}
    ),
    "sources in another order": Change(
        {"EXECUTE STATEMENT SET BEGIN": VISITS + "INSERT INTO more SELECT u, 1 FROM users;"}
    ),
    "a source is new and another is gone": Change(
        {CITIES: "", "EXECUTE STATEMENT SET BEGIN": VISITS + "INSERT INTO more SELECT u, 1 FROM visits;"},
        dict.fromkeys(("join_1 of the query before", "group_by_2 of the query before"), "gone"),
    ),
    "a source is new and feeds an operator": Change(
        {
            "EXECUTE STATEMENT SET BEGIN": VISITS,
            "END;": "INSERT INTO more SELECT u, COUNT(*) FROM TABLE(TUMBLE(TABLE visits, DESCRIPTOR(at),"
            " INTERVAL '10' SECOND)) GROUP BY u, window_start, window_end; END;",
        },
        {"window_aggregate_2": "new"},
        ["window_aggregate_2 .*no state for it"],
    ),
}


THE_SAME = ("a view of another name", "another way to write it", "a setting that changes no answer")


def program_of(text: str) -> Program:
    (job,) = read(text, {}, name="pipeline.sql").jobs
    return compile_job(job)


def changed(change: Change) -> str:
    text = QUERY_BEFORE
    for old, new in change.replaced.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def fates(found: Upgrade) -> dict[str, str]:
    return {each.operator.partition(" (")[0]: each.fate.value for each in found.verdicts}


@pytest.mark.parametrize("name", CHANGES)
def test_each_operator_learns_what_happens_to_its_state_and_all_reasons_come_at_once(name: str) -> None:
    change = CHANGES[name]
    before = program_of(QUERY_BEFORE).meaning
    found = upgrade(before, going_on(program_of(changed(change)), before).meaning)
    reported = fates(found)
    kept = {name: "kept" for name in reported if name not in change.others}
    assert reported == {**kept, **change.others}
    assert len(found.refusals) == len(change.refused)
    for reason in change.refused:
        assert any(re.search(reason, each) for each in found.refusals), found.refusals


@pytest.mark.parametrize("name", CHANGES)
def test_a_source_that_is_still_read_keeps_its_id_and_a_new_one_gets_one_that_was_never_given(name: str) -> None:
    before = program_of(QUERY_BEFORE).meaning
    after = going_on(program_of(changed(CHANGES[name])), before)
    known = {(s.table, s.topics): s.id for s in before.sources}
    for each in after.meaning.sources:
        assert each.id == known.get((each.table, each.topics), len(known))
    assert [s.id for s in after.sources] == sorted(s.id for s in after.sources) == [m.id for m in after.meaning.sources]
    ids = [each.id for group in (after.sources, after.outputs, after.operators) for each in group]
    assert ids == sorted(set(ids))
    assert all(o.id >= after.meaning.used_ids for o in after.outputs)
    assert {e.producer for o in after.operators for e in o.inputs} <= set(ids)
    again = going_on(program_of(QUERY_BEFORE), after.meaning)
    back = {s.table: s.id for s in again.meaning.sources}
    gone = {s.table for s in before.sources} - {s.table for s in after.meaning.sources if s.id < len(known)}
    for each in before.sources:
        assert (back[each.table] != each.id) == (each.table in gone), "of what was gone, the offsets are gone, too"


def test_of_a_checkpoint_of_another_version_nothing_is_taken_for_known(tmp_path: Path) -> None:
    program, files = program_of(QUERY_BEFORE), FolderFiles(str(tmp_path))
    other = {"format": min(READABLE) - 1, "change": {"rows": 1}}
    SmallFiles(files).write(QUERY, other)
    assert recovered_query(files) == other
    assert with_known_ids(program, other) is program
    with pytest.raises(StateMismatch, match="written by another version"):
        upgrade_of(other, program.meaning, None, str(tmp_path))


@pytest.mark.parametrize("name", THE_SAME)
def test_how_a_query_is_written_is_no_part_of_it(name: str) -> None:
    assert program_of(changed(CHANGES[name])).meaning == program_of(QUERY_BEFORE).meaning


def test_what_a_checkpoint_remembers_quotes_nothing_of_the_query() -> None:
    after = program_of(QUERY_BEFORE.replace("amount > 0", "amount <> 4711")).meaning
    assert "4711" not in json.dumps(remembered(after))
    assert any("4711" in text for each in after.operators for text in each.texts.values())


def test_operators_that_are_equal_in_all_have_states_of_their_own() -> None:
    program = program_of(QUERY_BEFORE)
    identities = [each.identity for each in program.operators]
    assert len(set(identities)) == len(identities)
    assert all(":" not in each for each in identities)


Rows = Counter[tuple[object, ...]]


class Service:
    """Does batches of a query on the files of a checkpoint, as tasks of its levels do."""

    def __init__(self, folder: Path, sql: Sql) -> None:
        self.folder = folder
        self.files = FolderFiles(str(folder))
        self.memory = SmallFiles(self.files)
        self.sql = sql
        self.batch = 0
        self.upgrade: Upgrade | None = None

    def start(self, text: str) -> None:
        """Go on with a query, or refuse it."""
        self.run_program(program_of(text))

    def run_program(self, program: Program) -> None:
        """Go on with what a query was compiled to."""
        known = recovered_query(self.files)
        self.program = with_known_ids(program, known)
        self.upgrade = upgrade_of(known, self.program.meaning, None, str(self.folder))
        self.memory.write(QUERY, remembered(self.program.meaning))
        self.topology = Topology(self.program)
        self.decoders = {s.id: self.decoder(s) for s in self.program.sources}

    def decoder(self, source: Source) -> Decoder:
        """What makes rows of the records of a table."""
        return decoder(source.table, source.columns)

    def now(self) -> int:
        """The wall clock of the next batch."""
        return 1_704_067_200_000 + 5000 * self.batch

    def arriving(self, source: Source, now: int) -> list[pa.Table]:
        """The records of a table in the next batch, by partition."""
        return [records(source.table.connector.topics[0], self.batch, now)]

    def tick(self) -> Tick:
        """Which channels there are, and which tables end with the next batch."""
        sources = self.program.sources
        return Tick({s.id: (channel_name(s.id, s.table.connector.topics[0], 0),) for s in sources}, ())

    def opened(self, operators: ShardOperators) -> ShardOperators:
        """The operators of a shard, before they receive the rows of a batch."""
        return operators

    def do(self, shards: int) -> dict[str, Rows]:
        """The next batch; the changes of each table."""
        now, layout, program = self.now(), Layout.of(shards), self.program
        waiting: list[Envelope] = []
        for source in program.sources:
            ingest = Ingest(self.topology, source, self.decoders[source.id], layout, self.sql)
            waiting += ingest.run(self.arriving(source, now), now)
        tick = self.tick().to_bytes()
        for level in range(1, program.levels + 1):
            for shard in range(shards):
                waiting.append(Envelope(shard, level, Kind.TICK, 0, "tick", 0, now, MIN_TIME, False, tick))
        levels = LevelsOnFiles(self.topology, program.levels, str(self.folder), opened=self.opened)
        reported = list(levels.tasks(self.batch, waiting, layout))
        Version.of(reported, program.levels, shards).write(self.files, self.batch)
        self.batch += 1
        return self.answers(waiting)

    def answers(self, envelopes: Sequence[Envelope]) -> dict[str, Rows]:
        """The net changes of a batch, by table."""
        tables = {o.id: o.table.name for o in self.program.outputs}
        found: dict[str, Rows] = {name: Counter() for name in tables.values()}
        for e in envelopes:
            if e.level == EGRESS and e.kind == Kind.OUTPUT:
                for row in table_of(e).to_pylist():
                    weight = row.pop(WEIGHT)
                    found[tables[e.address]][tuple(map(_hashable, row.values()))] += weight
        return {name: Counter({row: n for row, n in rows.items() if n}) for name, rows in found.items()}

    def states(self) -> set[str]:
        """The operators that blocks of the last version belong to."""
        levels = Version.before(self.files, self.batch).levels.values()
        manifests = [Manifest.from_bytes(self.files.block(at).to_pybytes()) for lv in levels for at in lv.manifests]
        return {block.partition(":")[0] for manifest in manifests for block in manifest.blocks}


def _hashable(value: object) -> object:
    return repr(value) if isinstance(value, list | dict) else value


def records(topic: str, batch: int, now: int) -> pa.Table:
    """What a partition gives in a batch, the same in every run."""
    draw = random.Random(f"{topic} {batch}")
    users = "abcdef"
    at = [f"2024-01-01 00:00:{5 * batch + draw.randrange(5):02}" for _ in range(20)]
    values = (
        [{"u": draw.choice(users), "amount": draw.randrange(-3, 10), "at": each} for each in at]
        if topic == "orders"
        else [{"u": draw.choice(users), "at": each} for each in at[:5]]
        if topic == "visits"
        else [{"u": draw.choice(users), "city": draw.choice("xyz")} for _ in range(3)]
    )
    count = len(values)
    columns: dict[str, list[object]] = {
        "key": [None] * count,
        "value": [json.dumps(each).encode() for each in values],
        "topic": [topic] * count,
        "partition": [0] * count,
        "offset": list(range(100 * batch, 100 * batch + count)),
        "timestamp": [now * 1000] * count,
        "timestamp_type": [0] * count,
        "headers": [None] * count,
    }
    return pa.table([pa.array(columns[f.name], f.type) for f in RECORD], schema=RECORD)


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    shared = Sql()
    with computing_with(shared):
        yield shared


GOES_ON = [name for name, change in CHANGES.items() if not change.refused and name not in THE_SAME]


@pytest.mark.parametrize(
    ("name", "before", "after"), [*((name, 2, 2) for name in GOES_ON), ("an INSERT and its operator are gone", 3, 2)]
)
def test_a_changed_query_answers_from_the_state_of_the_one_before_as_if_it_had_always_run(
    name: str, before: int, after: int, tmp_path: Path, sql: Sql
) -> None:
    text = changed(CHANGES[name])
    going = Service(tmp_path / "going", sql)
    going.start(QUERY_BEFORE)
    for _ in range(3):
        assert any(going.do(before).values())
    going.start(text)
    always = Service(tmp_path / "always", sql)
    always.start(text)
    for _ in range(3):
        always.do(before)
    answered: set[str] = set()
    for _ in range(3):
        found = going.do(after)
        assert found == always.do(after)
        answered |= {table for table, rows in found.items() if rows}
    assert answered >= {o.table.name for o in going.program.outputs} - {"best"}
    assert going.states() == always.states(), "of what is gone nothing is left"
    assert len(going.states()) == len(going.program.meaning.operators)


@pytest.mark.parametrize("name", [name for name, change in CHANGES.items() if change.refused])
def test_a_query_that_cannot_go_on_is_refused_with_all_reasons_and_the_check_says_the_same(
    name: str, tmp_path: Path, sql: Sql
) -> None:
    change = CHANGES[name]
    going = Service(tmp_path, sql)
    going.start(QUERY_BEFORE)
    with pytest.raises(StateMismatch, match="the state of another query; nothing was read or written") as refused:
        going.start(changed(change))
    for reason in change.refused:
        assert re.search(reason, str(refused.value))
    checked = CheckedUpgrade(program_of(changed(change)), going.files, str(tmp_path))
    assert not checked.goes_on
    for reason in change.refused:
        assert any(re.search(reason, line) for line in checked.lines)


def test_a_program_that_skips_the_check_finds_no_state_instead_of_an_empty_one(tmp_path: Path, sql: Sql) -> None:
    going = Service(tmp_path, sql)
    going.start(QUERY_BEFORE)
    going.do(2)
    going.memory.write(QUERY, None)
    going.start(changed(CHANGES["another aggregate"]))
    for shards in (2, 3):
        with pytest.raises(StateMismatch, match="it has none of group_by_1"):
            going.do(shards)


def test_the_check_reports_what_run_would_do(tmp_path: Path, sql: Sql) -> None:
    going = Service(tmp_path, sql)
    text = changed(CHANGES["an INSERT and its operator are gone"])
    fresh = CheckedUpgrade(program_of(text), going.files, str(tmp_path))
    assert (fresh.goes_on, fresh.lines) == (True, [f"there is no checkpoint at {tmp_path}: the job would start over"])
    going.start(QUERY_BEFORE)
    checked = CheckedUpgrade(program_of(text), going.files, str(tmp_path))
    assert checked.goes_on
    assert checked.lines[-3:] == [
        "top_n_1 of the query before: gone: its state is dropped",
        "table best is no longer written; its topic keeps its records",
        "it continues from this checkpoint",
    ]
    assert checked.lines[0] == "group_by_1 (aggregate by (u): SUM(amount), ttl 1 d): kept"
    same = CheckedUpgrade(program_of(QUERY_BEFORE), going.files, str(tmp_path))
    assert same.lines == ["the query is that of the checkpoint", "it continues from this checkpoint"]
    going.files.put("offsets/7", [b'v1\n{}\n{"orders":{"0":5}}\n-\n-'])
    waiting = CheckedUpgrade(program_of(text), going.files, str(tmp_path))
    assert not waiting.goes_on
    assert any(line.startswith("batch 7 was planned by the query before and is not done") for line in waiting.lines)
