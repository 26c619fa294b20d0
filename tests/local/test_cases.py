"""How `tailrace test` reads a folder, and what it says of one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.cli import main

PIPELINE = """
CREATE TABLE orders (user_id STRING, amount BIGINT, place BIGINT METADATA FROM 'offset' VIRTUAL)
WITH ('connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE big (user_id STRING, amount BIGINT, place BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'big', 'format' = 'json');
INSERT INTO big SELECT user_id, amount, place FROM orders WHERE amount > 5;
"""
ROWS = """
| amount | user_id |
|--------|---------|
| 6      | ann     |
| 5      | bob     |
---
| 7      | NULL    |
"""
CHANGES = """
|    | user_id | amount | place |
|----|---------|--------|-------|
| +I | ann     | 6      | 0     |
---
| +I | NULL    | 007    | 2     |
"""


def case(folder: Path, **files: str) -> Path:
    written = {"pipeline.sql": PIPELINE, "orders.rows": ROWS, "big.changes": CHANGES}
    written |= {name.replace("__", "."): text for name, text in files.items()}
    for name, text in written.items():
        if text:
            (folder / name).write_text(text)
    return folder


def test_a_case_passes_however_its_cells_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["test", str(case(tmp_path))]) == 0
    assert f"passed  {tmp_path}" in capsys.readouterr().out


def test_a_folder_of_cases_runs_all_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for name, changes in (("good", CHANGES), ("bad", CHANGES.replace("ann", "dan"))):
        (tmp_path / name).mkdir()
        case(tmp_path / name, big__changes=changes)
    assert main(["test", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "big.changes, batch 1:" in out
    assert "| +I | dan     | 6      | 0     |  expected, but missing" in out
    assert "1 of 2 cases passed" in out


def test_a_pipeline_that_is_not_utf_8_leaves_the_other_cases_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for name in ("bad", "good"):
        (tmp_path / name).mkdir()
        case(tmp_path / name)
    (tmp_path / "bad" / "pipeline.sql").write_bytes(f"-- caf\u00e9\n{PIPELINE}".encode("latin-1"))
    assert main(["test", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert "pipeline.sql:1:7: the file is not UTF-8" in captured.err
    assert f"invalid  {tmp_path / 'bad'}" in captured.out
    assert f"passed  {tmp_path / 'good'}" in captured.out
    assert "1 of 2 cases passed" in captured.out


def test_update_writes_what_came_and_drops_what_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    case(tmp_path, big__changes="", late__changes="old_operator\n| a |\n|---|\n| 1 |\n")
    assert main(["test", "--update", str(tmp_path)]) == 0
    assert (tmp_path / "big.changes").read_text() == CHANGES.lstrip().replace("007", "7  ")
    assert not (tmp_path / "late.changes").exists()
    assert "wrote" in capsys.readouterr().out
    assert main(["test", str(tmp_path)]) == 0


def test_records_go_through_the_format_of_their_table(tmp_path: Path):
    records = '{"user_id":"ann","amount":6}\n---\n{"amount":7}\n'
    changes = CHANGES.replace("| 2     |", "| 1     |")
    assert main(["test", str(case(tmp_path, orders__rows="", orders__records=records, big__changes=changes))]) == 0


def test_dead_records_that_nobody_expects_make_a_case_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    records = '{"user_id":"ann","amount":6}\nno json\n---\n{"amount":7}\n'
    assert main(["test", str(case(tmp_path, orders__rows="", orders__records=records))]) == 1
    assert "dead.changes, batch 1, table orders:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"orders__rows": ""},
            'table "orders" is read, so there must be orders.rows or orders.records; there is neither',
        ),
        ({"orders__records": "{}"}, "so there must be orders.rows or orders.records; there are both"),
        ({"orders__rows": "| amount |\n|---|\n| many |"}, 'orders.rows:3: column "amount": "many" is no BIGINT'),
        ({"orders__rows": "| amount |\n|---|\n| 1 | 2 |"}, "orders.rows:3: the row has 2 cells, the head has 1"),
        ({"orders__rows": "| price |\n|---|\n| 1 |"}, '"price" is no physical or METADATA column of table "orders"'),
        ({"orders__rows": "amount, user"}, "orders.rows:1: a row begins with a bar"),
        (
            {"orders__rows": "| amount | user |\n|---|---|\n---\n| user | amount |\n|---|---|\n| a | 1 |"},
            "orders.rows:4: a line above a rule repeats the head",
        ),
        ({"orders__rows": "| amount |\n|---|\n| 1 |\n|---|\n"}, "orders.rows:3: a line above a rule repeats the head"),
        ({"orders__rows": "@ noon\n| amount |\n|---|\n"}, "orders.rows:1: `@ noon` is not a time such as"),
        ({"orders__rows": "|  | amount |\n|---|---|\n| ? | 1 |"}, 'orders.rows:3: "?" is no kind of change'),
        (
            {"orders__rows": "|  | amount |\n|---|---|\n| + | 7 |\n| - | 7 |"},
            'orders.rows:4: "-" is no kind of change that table "orders" can have: format \'json\' only adds rows\n ',
        ),
        ({"big__changes": "| a | b |\n|---|---|\n| 1 |"}, "big.changes:3: the row has not as many cells as the head"),
        ({"big__changes": "junk"}, 'big.changes:1: "junk" is no row: a row begins with a bar\n  hint: '),
        ({"big__changes": CHANGES + "+I | dan | 9 | 3 |"}, 'big.changes:7: "+I | dan | 9 | 3 |" is no row'),
        ({"big__changes": "| a |\n|---|\n|---|"}, "big.changes:3: no head stands above this line"),
        (
            {"late__changes": "late_1\n| a |\n|---|"},
            'late.changes:1: "late_1" is neither a row, which begins with a bar',
        ),
        (
            {"dead__changes": "| a |\n|---|"},
            "dead.changes:1: no title stands above this table\n  hint:   the titles that can be are",
        ),
        (
            {"dead__changes": "table big\n| a |\n|---|"},
            "nor a title\n  hint:   the titles that can be are calc_1, table orders\n",
        ),
        (
            {"dead__changes": "table orders\n---\n| a |\n|---|"},
            'dead.changes:1: no table with a head stands under the title "table orders"',
        ),
        (
            {"order__rows": ROWS},
            'order.rows: the pipeline reads no table "order"\n  hint:   it reads orders; rename the file, or remove it',
        ),
        ({"big__rows": ROWS}, 'big.rows: the pipeline reads no table "big"'),
        ({"zz__records": "{}"}, 'zz.records: the pipeline reads or writes no table "zz"'),
        ({"zz__changes": "\n"}, 'zz.changes: the pipeline writes no table "zz"\n  hint:   it writes big; rename'),
        ({"orders__changes": "\n"}, 'orders.changes: the pipeline writes no table "orders"'),
        ({"late__result": "\n"}, 'late.result: the pipeline writes no table "late"'),
    ],
)
def test_a_mistake_in_a_case_is_reported_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], message: str
):
    assert main(["test", str(case(tmp_path, **files))]) == 2
    assert message in capsys.readouterr().out


def test_a_line_that_is_no_row_is_no_expectation_of_a_table_without_rows(tmp_path: Path):
    assert main(["test", str(case(tmp_path, orders__rows="| amount |\n|---|\n| 1 |", big__changes=""))]) == 0
    assert main(["test", str(case(tmp_path, orders__rows="| amount |\n|---|\n| 1 |", big__changes="junk"))]) == 2


def test_a_second_table_in_a_batch_counts_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    head, rule, row = CHANGES.strip().splitlines()[:3]
    batch = CHANGES.replace(row, "\n".join((row, head, rule, row.replace("ann", "dan"))))
    assert main(["test", str(case(tmp_path, big__changes=batch))]) == 1
    assert "| +I | dan     | 6      | 0     |  expected, but missing" in capsys.readouterr().out


def test_a_head_without_rows_names_the_columns_that_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rows, head = "| amount |\n|---|\n| 1 |", "|  | who |\n|---|---|"
    assert main(["test", str(case(tmp_path, orders__rows=rows, big__changes=head))]) == 1
    assert "the columns are , user_id, amount, place; expected are , who" in capsys.readouterr().out


def test_update_writes_over_an_expectation_that_cannot_be_read(tmp_path: Path):
    case(tmp_path, big__changes="junk", zz__changes="junk")
    assert main(["test", "--update", str(tmp_path)]) == 0
    assert (tmp_path / "big.changes").read_text() == CHANGES.lstrip().replace("007", "7  ")
    assert not (tmp_path / "zz.changes").exists()


def test_update_takes_no_input_that_belongs_to_no_table(tmp_path: Path):
    case(tmp_path, zz__rows=ROWS, big__changes="")
    assert main(["test", "--update", str(tmp_path)]) == 2
    assert not (tmp_path / "big.changes").exists()
    assert (tmp_path / "zz.rows").exists()


def test_files_that_are_none_of_a_case_may_lie_beside_it(tmp_path: Path):
    assert main(["test", str(case(tmp_path, README__md="#", zz__csv="a", __zz__rows="a", zz="a"))]) == 0


COUNT = """
CREATE TABLE t (k STRING {key}) WITH ({options});
CREATE TABLE n (n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'n', 'format' = 'changelog-json');
INSERT INTO n SELECT COUNT(*) FROM t;
"""
KAFKA = "'connector' = 'kafka', 'topic' = 't', 'scan.startup.mode' = 'earliest-offset', 'format' = "
UPSERTS = "'connector' = 'upsert-kafka', 'topic' = 't', 'key.format' = 'json', 'value.format' = "
REGISTRY = "'avro-confluent', 'avro-confluent.url' = 'http://registry'"
SOURCES = [
    *[(f"{KAFKA}'{form}'", "+I") for form in ("json", "csv", "avro", "raw")],
    (KAFKA + REGISTRY, "+I"),
    ("'connector' = 'datagen', 'number-of-rows' = '1'", "+I"),
    *[(f"{UPSERTS}'{form}'", "+I +U -D") for form in ("json", "csv")],
    *[(f"{KAFKA}'{form}-json'", "+I -U +U -D") for form in ("changelog", "debezium", "canal", "maxwell", "ogg")],
    (KAFKA + REGISTRY.replace("avro-", "debezium-avro-"), "+I -U +U -D"),
]


@pytest.mark.parametrize(("options", "kinds"), SOURCES)
def test_rows_have_the_kinds_of_change_that_records_of_their_table_can_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, kinds: str
):
    key = ", PRIMARY KEY (k) NOT ENFORCED" if "upsert" in options else ""
    (tmp_path / "pipeline.sql").write_text(COUNT.format(options=options, key=key))
    accepted = []
    for kind in ("+I", "-U", "+U", "-D"):
        (tmp_path / "t.rows").write_text(f"|  | k |\n|---|---|\n| +I | a |\n| +I | b |\n---\n| {kind} | a |\n")
        code = main(["test", "--update", str(tmp_path)])
        out = capsys.readouterr().out
        if code:
            assert code == 2
            assert f't.rows:6: "{kind}" is no kind of change that table "t" can have: ' in out
            assert "\n  hint:   write " in out
        else:
            accepted.append(kind)
    assert accepted == kinds.split()


LATE = """
CREATE TABLE orders (k STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE big (k STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'big', 'format' = 'json');
INSERT INTO big SELECT k, COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND))
GROUP BY k, window_start, window_end;
"""


def test_late_rows_of_all_shards_and_jobs_are_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    late = [f"| {k} | 2024-01-01 00:00:01 |" for k in "abcdef"]
    rows = "\n".join(("| k | ts |", "|---|---|", "| a | 2024-01-01 00:00:20 |", "---", *late))
    case(tmp_path, pipeline__sql=LATE + LATE[LATE.index("INSERT") :], orders__rows=rows, big__changes="")
    assert main(["test", "--update", str(tmp_path)]) == 0
    lines = (tmp_path / "late.changes").read_text().splitlines()
    assert [line[:5] for line in lines] == ["---", "windo", "| k |", "|---|", *(f"| {k} |" for k in "aabbccddeeff")]
    for shards in ("1", "2"):
        assert main(["test", "--shards", shards, str(tmp_path)]) == 0
    (tmp_path / "late.changes").write_text("\n".join(lines[:-1]) + "\n")
    capsys.readouterr()
    assert main(["test", str(tmp_path)]) == 1
    assert "+ | f | 2024-01-01 00:00:01 |  not expected" in capsys.readouterr().out


def test_a_folder_without_cases_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["test", str(tmp_path)]) == 2
    assert "there is no pipeline.sql" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("hex zz", "orders.records:1: `hex zz` is not hexadecimal"),
        ("@ partition 99999999999999999999", "orders.records:1: `@ partition 99999999999999999999`: Kafka has no"),
        ("caf\u00e9", "orders.records:1: the file is not UTF-8"),
    ],
)
def test_a_line_that_cannot_be_read_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, expected: str
):
    case(tmp_path, orders__rows="")
    (tmp_path / "orders.records").write_bytes(line.encode("latin-1"))
    assert main(["test", str(tmp_path)]) == 2
    assert expected in capsys.readouterr().out


def test_the_number_of_shards_is_checked(tmp_path: Path):
    with pytest.raises(SystemExit):
        main(["test", str(case(tmp_path)), "--shards", "0"])
