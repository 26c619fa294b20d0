"""What `tailrace state` and `tailrace checkpoint` tell of a checkpoint, made in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from operators.sql import Sql
from service.checkpoint.blocks import BlockWriter, Manifest
from service.checkpoint.copying import CopyRefused, copy, done_batches
from service.checkpoint.files import FolderFiles, StateMissing, StoredAt
from service.checkpoint.small_files import SmallFiles
from service.checkpoint.version import LevelState, Version
from service.cli import main
from service.deployment.upgrading import remembered
from service.formats.registry import decoder
from service.local.runner import LocalRunner
from service.plan.kept_tables import OPERATORS, KeptOperator, kept_operators, short_identity
from service.plan.lowering.lower import compile_job
from service.runtime.watermarks import Tick, channel_name
from service.sql.pipeline import read
from tests.checkpoint.test_batch_log import TICK, planned, written
from tests.local.test_conditions import NOW, records

PIPELINE = """
    CREATE TABLE t (who STRING, n INT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');
    CREATE TABLE o (who STRING, c BIGINT, s INT)
      WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'changelog-json');
    INSERT INTO o SELECT who, COUNT(*), SUM(n) FROM t GROUP BY who;
"""
BATCHES = 12
"""Each with another number of shards, one and two in turn."""

Say = Callable[..., tuple[int, str]]


def make(folder: Path) -> None:
    """A checkpoint of the job after some batches; each person of a batch has one row more than the one before."""
    program = compile_job(read(PIPELINE).jobs[0])
    source = program.sources[0]
    runner = LocalRunner(program, {source.id: decoder(source.table, source.columns)}, 2, Sql())
    files = FolderFiles(str(folder))
    tick = Tick({source.id: (channel_name(source.id, "t", 0),)}, ())
    for batch in range(BATCHES):
        rows = [json.dumps({"who": f"w{i}", "n": i}) for i in range(100)]
        runner.batch({source.id: [records("t", rows)]}, tick, NOW)
        writer = BlockWriter(files, batch, 1, 0)
        places: list[StoredAt] = []
        for store in runner._levels[1]._stores:
            blocks = {name: writer.add(data) for name, data in store.blocks.items()}
            places.append(writer.add(pa.py_buffer(Manifest(store.manifest, blocks).to_bytes())))
        writer.close()
        Version({1: LevelState({}, tuple(places))}).write(files, batch)
        planned(folder, batch, f'{{"t":{{"0":{100 * (batch + 1)}}}}}', TICK)
        written(folder, f"commits/{batch}", "v1", '{"nextBatchWatermarkMs":0}')
    written(folder, "metadata", "{}")
    written(folder, "sources/0/0", '{"t":{"0":0}}')
    memory = SmallFiles(files)
    memory.write("id", "c1")
    memory.write("tries", {"batch": 1, "processes": 1})
    memory.write("fixed", remembered(program.meaning))
    memory.write(OPERATORS, [each.to_json() for each in kept_operators(program)])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints") / "job"
    make(folder)
    return folder


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Exit code and words of a command."""

    def run(*words: object) -> tuple[int, str]:
        code = main([str(word) for word in words])
        output = capsys.readouterr()
        return code, output.out + output.err

    return run


def test_an_operator_is_remembered_with_its_tables() -> None:
    program = compile_job(read(PIPELINE).jobs[0])
    (operator,) = kept_operators(program)
    assert KeptOperator.from_json(json.loads(json.dumps(operator.to_json()))) == operator
    assert operator.tables["groups"].key == ("who",)
    assert short_identity("group_by-0123456789abcdef-2") == "group_by-012345-2"
    assert operator.short == short_identity(operator.identity) != operator.identity


def test_the_rows_of_an_operator_are_shown_and_found_by_key(made: Path, say: Say) -> None:
    code, printed = say("state", made)
    assert (code, printed.startswith("group_by_1 (group_by-")) == (0, True)
    assert "groups (who, " in printed
    code, printed = say("state", made, "group_by_1", "w7")
    assert code == 0
    assert printed.splitlines()[0].startswith("| who | ")
    assert [word.strip() for word in printed.splitlines()[2].split("|")[1:3]] == ["w7", str(BATCHES)]
    assert say("state", made, "group_by_1", "who=w7")[1] == printed
    assert len(say("state", made, "group_by_1", "--limit", 5)[1].splitlines()) == 2 + 5 + 1


@pytest.mark.parametrize("form", ["arrow", "parquet", "json"])
def test_duckdb_opens_what_is_written(form: str, made: Path, say: Say, tmp_path: Path) -> None:
    out = tmp_path / f"groups.{form}"
    assert say("state", made.parent, "group_by_1", "--format", form, "--out", out) == (
        0,
        f"100 rows of group_by_1, table groups, are in {out}\n",
    )
    known = {"rows": pa.ipc.open_file(str(out)).read_all()} if form == "arrow" else {}
    place = "rows" if form == "arrow" else f"'{out}'"
    connection = duckdb.connect()
    for name, table in known.items():
        connection.register(name, table)
    assert connection.execute(f"SELECT COUNT(DISTINCT who), COUNT(*) FROM {place}").fetchone() == (100, 100)


def test_a_checkpoint_is_listed_and_inspected(made: Path, say: Say) -> None:
    code, printed = say("checkpoint", "list", made)
    assert code == 0
    assert printed.count("job: batch ") == BATCHES
    assert f"  t: partition 0 before {100 * BATCHES:,}" in printed
    code, printed = say("checkpoint", "inspect", made.parent)
    assert code == 0
    assert f"job: after batch {BATCHES - 1}, 1 operators keep state" in printed
    assert "table groups: 100 rows, " in printed
    assert "the fullest hundredth of the slots holds" in printed
    assert "slots" not in say("checkpoint", "inspect", "--quick", made)[1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["state", "{}", "nobody"], 'no operator with state is called "nobody"'),
        (["state", "{}", "group_by_1", "what=w7"], 'table groups has no column "what"'),
        (["state", "{}", "group_by_1", "--table", "no"], 'group_by_1 has no table "no"'),
        (["state", "{}/tailrace"], "there is no checkpoint at "),
        (["state", "{}", "--batch", "99"], f"batch 99 is not among batches 0 to {BATCHES - 1}"),
        (["checkpoint", "save", "ftp://x", "{}"], "ftp://x is neither a folder nor a URL of s3a:// or gs://"),
        (["checkpoint", "save", "{}", "{}"], "there is something at the place"),
    ],
)
def test_a_mistake_is_reported(words: list[str], expected: str, made: Path, say: Say) -> None:
    code, printed = say(*(word.format(made) for word in words))
    assert code == 1
    assert expected in printed


def test_a_saved_checkpoint_shows_the_same(made: Path, say: Say, tmp_path: Path) -> None:
    code, printed = say("checkpoint", "save", made.parent, tmp_path)
    assert (code, printed.startswith(f"job: batch {BATCHES - 1} is saved in {tmp_path}/job: ")) == (0, True)
    assert done_batches(FolderFiles(str(tmp_path / "job"))) == [BATCHES - 1]
    assert say("state", tmp_path / "job", "group_by_1") == say("state", made, "group_by_1")
    assert SmallFiles(FolderFiles(str(tmp_path / "job"))).read("tries") is None
    assert say("checkpoint", "save", "--batch", 4, made, tmp_path / "four")[0] == 0
    rows = say("state", tmp_path / "four", "group_by_1", "w1")[1].splitlines()[2]
    assert [word.strip() for word in rows.split("|")[1:3]] == ["w1", "5"]


class Moving(FolderFiles):
    """The checkpoint of a job that sweeps while it is copied: files vanish as they are about to be read."""

    def __init__(self, root: str, gone: int) -> None:
        super().__init__(root)
        self.left = gone

    def get(self, name: str) -> bytes | None:
        if name.startswith("tailrace/state/") and self.left:
            self.left -= 1
            return None
        return super().get(name)


def test_a_file_that_is_swept_away_while_it_is_copied_has_a_newer_batch_taken(made: Path, tmp_path: Path) -> None:
    copied = copy(Moving(str(made), 2), FolderFiles(str(tmp_path / "a")))
    assert copied.batch == BATCHES - 1
    with pytest.raises(StateMissing):
        copy(Moving(str(made), 99), FolderFiles(str(tmp_path / "b")))
    with pytest.raises(CopyRefused, match="no batch is done"):
        copy(FolderFiles(str(tmp_path / "nothing")), FolderFiles(str(tmp_path / "c")))


TABLES = """
CREATE TABLE t (x STRING, who STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');
CREATE TABLE u (x STRING, who STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'u', 'format' = 'debezium-json');
CREATE TABLE v (y STRING, me STRING, since TIMESTAMP(3), WATERMARK FOR since AS since, PRIMARY KEY (me) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'v', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE o (a STRING, b STRING, c STRING)
WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'changelog-json');
"""


@pytest.mark.parametrize(
    ("query", "table", "columns"),
    [
        (
            "SELECT who, FIRST_VALUE(x), LISTAGG(x) FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '1'"
            " HOUR) GROUP BY who, window_start, window_end",
            "slices",
            {"k0": "who"},
        ),
        ("SELECT x, who, MAX(x) OVER (PARTITION BY who ORDER BY ts) FROM t", "totals", {"k0": "who"}),
        ("SELECT who, MAX(x), MIN(x) FROM t GROUP BY who", "groups", {"k0": "who"}),
        (
            "SELECT u.x, who, y FROM u LEFT JOIN v FOR SYSTEM_TIME AS OF u.ts ON who = me",
            "answered",
            {"k0": "who", "c0": "y", "c1": "me", "c2": "since"},
        ),
        (
            "SELECT u.x, who, y FROM u LEFT JOIN v FOR SYSTEM_TIME AS OF u.ts ON who = me",
            "current",
            {"c0": "y", "c1": "me", "c2": "since"},
        ),
    ],
)
def test_columns_of_state_have_the_names_that_they_have_in_the_query(
    query: str, table: str, columns: dict[str, str]
) -> None:
    (job,) = read(TABLES + f"INSERT INTO o {query};").jobs
    tables = {name: each for operator in kept_operators(compile_job(job)) for name, each in operator.tables.items()}
    shown = tables[table].shown
    assert {column: name for column, name in shown.items() if column[0] in "kc" and column[1:].isdigit()} == columns


def test_the_operators_of_every_golden_pipeline_are_remembered() -> None:
    for file in sorted((Path(__file__).parents[1] / "pipelines").glob("*/pipeline.sql")):
        for job in read(file.read_text()).jobs:
            for operator in kept_operators(compile_job(job)):
                stored = json.loads(json.dumps(operator.to_json()))
                assert KeptOperator.from_json(stored) == operator, file
                for table in operator.tables.values():
                    assert list(table.shown) == table.spec.schema.names, file
                    assert len(set(table.shown.values())) == len(table.shown), file
                    assert set(table.key) <= set(table.shown.values()), file
