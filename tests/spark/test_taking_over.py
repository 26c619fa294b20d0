"""What a backfill has made of what is new in a query, put together with what the query before has of the rest.

Batches are done as tasks do them, on the files of a checkpoint; there is no JVM and no Kafka.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from operators.sql import Sql
from service.checkpoint.files import Files, FolderFiles
from service.deployment.backfill import FOLDER, FollowedEnds
from service.deployment.taking_over import BackfillIncomplete, take_over
from service.plan.backfill import BackfillPart, backfill_part
from service.plan.meaning import Meaning
from service.plan.source_ids import going_on
from tests.spark import test_upgrades as upgrades
from tests.spark.test_upgrades import CHANGES, QUERY_BEFORE, Change, Service, program_of

sql = upgrades.sql
BATCHES = 3
FOR_EVER = QUERY_BEFORE.replace("'1 d'", "'0 s'")

FILLED = {
    **{
        name: CHANGES[name]
        for name in ("another filter below", "another condition of a join", "another aggregate", "another window")
    },
    "a table is new, and what feeds it is kept": CHANGES["a sink with updates is new"],
    "a table is new, and nothing that feeds it keeps state": Change(
        {
            "EXECUTE": "CREATE TABLE more WITH ('topic' = 'more') LIKE minutes;\nEXECUTE",
            "END;": "INSERT INTO more SELECT u, amount FROM orders WHERE amount > 5; END;",
        }
    ),
    "a source is new and feeds an operator": CHANGES["a source is new and feeds an operator"],
    "an operator is fed by one that is kept": Change(
        {
            "EXECUTE": "CREATE TABLE more WITH ('topic' = 'more') LIKE best;\nEXECUTE",
            "END;": "INSERT INTO more SELECT 'x', MAX(total) FROM (SELECT u, SUM(amount) AS total FROM paid"
            " GROUP BY u); END;",
        }
    ),
    "an operator is at a level that was not there": Change(
        {
            "EXECUTE": "CREATE TABLE more WITH ('topic' = 'more') LIKE best;\nEXECUTE",
            "END;": "INSERT INTO more SELECT 'x', COUNT(*) FROM (SELECT t, COUNT(*) FROM (SELECT u, SUM(amount) AS t"
            " FROM orders GROUP BY u) GROUP BY t); END;",
        }
    ),
}


def text_of(change: Change) -> str:
    text = FOR_EVER
    for old, new in change.replaced.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def note_done(files: Files, service: Service) -> None:
    """What Spark's logs say of the batches that were done."""
    for number in range(service.batch):
        lines = [json.dumps({s.table.connector.topics[0]: {"0": 100 * number + 100}}) for s in service.program.sources]
        files.put(f"offsets/{number}", ["\n".join(["v1", "{}", *lines, "-"]).encode()])
        files.put(f"commits/{number}", [b"v1\n{}"])


class Backfilled:
    """A query and the backfill of what another has beside it, both at the end of the same batch."""

    def __init__(self, folder: Path, sql: Sql, text: str, *, before: str = FOR_EVER, shards: int = 2) -> None:
        self.going = Service(folder / "going", sql)
        self.going.start(before)
        for _ in range(BATCHES):
            self.going.do(2)
        self.program = going_on(program_of(text), self.going.program.meaning)
        self.part: BackfillPart = backfill_part(self.program, self.going.program.meaning)
        self.backfill = Service(folder / "going" / FOLDER, sql)
        self.backfill.run_program(self.part.program)
        self.written = [self.backfill.do(shards) for _ in range(BATCHES)]
        note_done(self.going.files, self.going)
        note_done(self.backfill.files, self.backfill)

    def take_over(self) -> int:
        return take_over(self.going.files, self.backfill.files, self.part, self.program)


@pytest.mark.parametrize(("name", "shards"), [*((name, 2) for name in FILLED), ("another filter below", 3)])
def test_a_query_goes_on_with_what_was_backfilled_as_if_it_had_always_run(
    name: str, shards: int, tmp_path: Path, sql: Sql
) -> None:
    text = text_of(FILLED[name])
    backfilled = Backfilled(tmp_path, sql, text, shards=shards)
    assert not backfilled.part.refusals
    always = Service(tmp_path / "always", sql)
    always.start(text)
    for number in range(BATCHES):
        answers = always.do(2)
        for table in backfilled.part.tables:
            assert backfilled.written[number][table] == answers[table]
    assert backfilled.take_over() == BATCHES
    backfilled.backfill.files.remove_folder("tailrace")
    going = backfilled.going
    going.start(text)
    for _ in range(BATCHES):
        assert going.do(2) == always.do(2)
    assert going.states() == always.states()


def test_until_the_last_step_the_first_query_goes_on_as_if_nothing_had_been(tmp_path: Path, sql: Sql) -> None:
    text = text_of(FILLED["another filter below"])
    made = Backfilled(tmp_path / "made", sql, text)
    always = Service(tmp_path / "always", sql)
    always.start(FOR_EVER)
    for _ in range(BATCHES):
        always.do(2)
    wanted = always.do(2)
    steps, moment = 1, 0
    while moment < steps:
        folder = tmp_path / f"killed{moment}"
        shutil.copytree(tmp_path / "made" / "going", folder)
        going, backfill = Service(folder, sql), Service(folder / FOLDER, sql)
        going.batch = backfill.batch = BATCHES
        killed = _Steps(str(folder), moment)
        with pytest.raises(_Killed):
            take_over(killed, backfill.files, made.part, made.program)
        going.start(FOR_EVER)
        assert going.upgrade is None, "it is the first query's still"
        assert going.do(2) == wanted
        # What was backfilled takes over from there, once it has read what was done since.
        backfill.run_program(made.part.program)
        backfill.do(2)
        note_done(going.files, going)
        note_done(backfill.files, backfill)
        whole = _Steps(str(folder))
        assert take_over(whole, backfill.files, made.part, made.program) == BATCHES + 1
        going.start(text)
        assert going.upgrade is None
        steps, moment = whole.count, moment + 1
    assert steps > 5


class _Killed(Exception):
    pass


class _Steps(FolderFiles):
    """Files of a checkpoint whose writer is killed before step `last`."""

    def __init__(self, root: str, last: int = -1) -> None:
        super().__init__(root)
        self.count = 0
        self._last = last

    def _step(self) -> None:
        if self.count == self._last:
            raise _Killed
        self.count += 1

    def put(self, name: str, parts: object) -> None:
        self._step()
        super().put(name, parts)  # type: ignore[arg-type]

    def link(self, name: str, to: str) -> None:
        self._step()
        super().link(name, to)


def test_a_query_that_was_stateless_gets_what_was_backfilled(tmp_path: Path, sql: Sql) -> None:
    stateless = FOR_EVER[: FOR_EVER.index("EXECUTE")] + (
        "EXECUTE STATEMENT SET BEGIN INSERT INTO minutes SELECT u, amount FROM orders;\n"
        "INSERT INTO minutes SELECT u, CHAR_LENGTH(city) FROM users; END;"
    )
    text = stateless.replace("END;", "INSERT INTO totals SELECT u, SUM(amount) AS total FROM paid GROUP BY u; END;")
    backfilled = Backfilled(tmp_path, sql, text, before=stateless)
    always = Service(tmp_path / "always", sql)
    always.start(text)
    for _ in range(BATCHES):
        always.do(2)
    backfilled.take_over()
    backfilled.going.start(text)
    assert backfilled.going.do(2) == always.do(2)


def test_what_has_not_read_the_same_does_not_take_over(tmp_path: Path, sql: Sql) -> None:
    backfilled = Backfilled(tmp_path, sql, text_of(FILLED["another aggregate"]))
    backfilled.going.do(2)
    note_done(backfilled.going.files, backfilled.going)
    with pytest.raises(BackfillIncomplete, match="has read orders/0 up to 300, and the query up to 400"):
        backfilled.take_over()
    backfilled.backfill.do(2)
    note_done(backfilled.backfill.files, backfilled.backfill)
    backfilled.going.files.put("offsets/4", [b'v1\n{}\n{"orders":{"0":500}}\n-\n-'])
    with pytest.raises(BackfillIncomplete, match="the query has planned batch 4 and not done it"):
        backfilled.take_over()


def sums_of_double(text: str) -> str:
    return text.replace("SUM(amount)", "SUM(CAST(amount AS DOUBLE))").replace("total BIGINT", "total DOUBLE")


def replaced(text: str, change: Mapping[str, str]) -> str:
    for old, new in change.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


ONE_MORE = CHANGES["a sink with updates is new"].replaced
OTHER_CITIES = {"COUNT(*) FROM paid JOIN": "COUNT(DISTINCT paid.u) FROM paid JOIN"}
REFUSED = {
    "windows of processing time": (
        FOR_EVER,
        replaced(
            FOR_EVER,
            {"orders (u": "orders (p AS PROCTIME(), u", "DESCRIPTOR(at), INTERVAL": "DESCRIPTOR(p), INTERVAL"},
        ),
        "window_aggregate_1 depends on processing time",
    ),
    "a table that is made up": (
        FOR_EVER,
        replaced(FOR_EVER, {f"WITH ({upgrades.KAFKA}, 'topic' = 'users')": "WITH ('connector' = 'datagen')"}),
        "table users is generated",
    ),
    "a table that ends": (
        FOR_EVER,
        replaced(FOR_EVER, {"'topic' = 'users'": "'topic' = 'users', 'scan.bounded.mode' = 'latest-offset'"}).replace(
            *next(iter(OTHER_CITIES.items()))
        ),
        "table users ends",
    ),
    "kept rows that may expire": (QUERY_BEFORE, replaced(QUERY_BEFORE, ONE_MORE), "group_by_1 is kept.*its TTL"),
    "kept sums of DOUBLE": (
        sums_of_double(FOR_EVER),
        sums_of_double(replaced(FOR_EVER, ONE_MORE)),
        "group_by_1 is kept and feeds what is new.*sums of DOUBLE",
    ),
    "kept windows": (
        FOR_EVER,
        replaced(
            FOR_EVER,
            {
                "EXECUTE": "CREATE TABLE more WITH ('topic' = 'more') LIKE minutes;\nEXECUTE",
                "END;": "INSERT INTO more SELECT u, COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at),"
                " INTERVAL '10' SECOND)) GROUP BY u, window_start, window_end; END;",
            },
        ),
        "window_aggregate_1 is kept and feeds what is new.*event time",
    ),
}
"""The query before, the changed one, and a part of the reason."""


@pytest.mark.parametrize("name", REFUSED)
def test_what_reading_again_would_not_make_the_same_is_refused_with_the_reason(name: str) -> None:
    before, text, reason = REFUSED[name]
    part = backfill_part(program_of(text), program_of(before).meaning)
    assert any(re.search(reason, each) for each in part.refusals), part.refusals


def test_only_what_is_new_and_what_feeds_it_is_backfilled() -> None:
    before, after = program_of(FOR_EVER), program_of(text_of(FILLED["a table is new, and what feeds it is kept"]))
    part = backfill_part(after, before.meaning)
    assert (part.operators, part.tables, part.shared) == ((), ("more",), ("group_by_1",))
    assert [s.table.name for s in part.program.sources] == ["orders"]
    assert {o.table.name for o in part.program.outputs} == {"more"}
    assert part.same_start == {part.program.sources[0].id}
    assert not backfill_part(before, before.meaning).anything
    whole = backfill_part(after, Meaning(""))
    assert whole.program.operators == after.operators
    assert not whole.same_start


class TestEnds:
    """How far a backfill reads."""

    @pytest.fixture
    def files(self, tmp_path: Path) -> FolderFiles:
        files = FolderFiles(str(tmp_path))
        self.do(files, 0, 5)
        return files

    @staticmethod
    def do(files: Files, number: int, end: int, *, done: bool = True) -> None:
        files.put(f"offsets/{number}", [f'v1\n{{}}\n-\n{{"t":{{"0":{end},"1":0}}}}\n-'.encode()])
        if done:
            files.put(f"commits/{number}", [b"v1\n{}"])

    def test_they_are_those_of_the_last_batch_that_is_done(self, files: FolderFiles) -> None:
        events: list[tuple[str, object]] = []
        locked = [False]
        released: list[bool] = []
        ends = FollowedEnds(
            files,
            {7: 1},
            {},
            stopped=lambda: locked[0],
            release=lambda: released.append(True),
            report=lambda event, **more: events.append((event, *more.values())),
            look_every=0.0,
        )
        assert ends.now() == {7: '{"t": {"0": 5, "1": 0}}'}
        self.do(files, 1, 9, done=False)
        assert ends.now() == {7: '{"t": {"0": 5, "1": 0}}'}
        assert not ends.final({7: {"t": {"0": 4}}}), "a record is left"
        assert not ends.final({7: {"t": {"0": 5}}}), "the query runs"
        locked[0] = True
        assert not ends.final({7: {"t": {"0": 5}}}), "a batch is planned"
        assert released
        self.do(files, 1, 9)
        assert not ends.final({7: {"t": {"0": 5}}})
        assert ends.final({7: {"t": {"0": 9}}})
        assert ends.complete
        assert ("backfill", 1) in events
        assert [event for event, *_ in events].count("backfilled") == 2
