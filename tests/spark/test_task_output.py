"""What a task writes: the same records however its changes are cut, in one transaction that is committed once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from operators.sql import Sql
from operators.time import MIN_TIME
from service.checkpoint.batch_plan import BatchPlan
from service.formats.contract import Encoder
from service.formats.not_encodable import NotEncodable
from service.formats.registry import encoder
from service.kafka.errors import KafkaUnreachable, MessageTooLarge, Refused, TransactionExpired, TransactionLost
from service.kafka.writer.report import WriteReport
from service.kafka.writer.writer_settings import WriterSettings
from service.plan.lowering.lower import compile_job
from service.runtime.envelope import EGRESS, Envelope, Kind, pack
from service.runtime.source_digest import digest
from service.runtime.task_metrics import TaskMetrics
from service.spark.query import egress, transactions
from service.spark.query.egress import Egress, WriterRecords
from service.spark.query.job_spec import JobSpec, WorkerJob
from service.spark.query.task_batch import TaskBatch
from service.spark.query.task_output import write_output
from service.spark.query.transactions import TaskTransactions
from service.sql.pipeline import read
from tests.spark.test_job import job_spec

PIPELINE = """
CREATE TABLE t (id BIGINT, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');
CREATE TABLE counts (id BIGINT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED)
  WITH ('connector' = 'kafka', 'topic' = 'counts', 'format' = 'debezium-json');
INSERT INTO counts SELECT id, SUM(n) FROM t GROUP BY id;
"""
STATELESS = """
CREATE TABLE t (id BIGINT, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');
CREATE TABLE evens (id BIGINT, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'evens', 'format' = 'json');
INSERT INTO evens SELECT id, n FROM t WHERE n % 2 = 0;
"""
NOW = 1_700_000_000_000
PLAN = BatchPlan(7, ("{}", "-"), {"batchTimestampMs": NOW}, shards=2, readers=2, plan=0)
AT = TaskBatch(number=7, now=NOW, identifier=30, task=1, attempt=0, plan=PLAN.to_bytes())
UPDATES = pa.table(
    {"c0": [1, 2, 2, 3, 3, 4], "c1": [10, 20, 21, 30, 31, 40], "_weight": [1, -1, 1, -1, 1, -1]},
    schema=pa.schema([("c0", pa.int64()), ("c1", pa.int64()), ("_weight", pa.int64())]),
)


@dataclass
class Kafka:
    """What became of each transaction, in the place of the writer process. `committed`: by an earlier attempt."""

    committed: bool = False
    unreachable: bool = False
    expired: bool = False
    refusing: str = ""
    """The query whose writer's records are refused as too large."""
    log: list[str] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    plans: list[bytes] = field(default_factory=list)
    written_by: list[str] = field(default_factory=list)
    """The writers, by the query that they are of, in the order of their commits."""

    def client(
        self, settings: WriterSettings, partition: int, batch: int, source_ranges: bytes | None, earlier: bytes | None
    ) -> Client:
        return Client(self, f"{partition}/{batch}", source_ranges, earlier, settings.query)


@dataclass
class Client:
    kafka: Kafka
    of: str
    digest: bytes | None
    earlier: bytes | None
    query: str

    def begin(self) -> bool:
        self.kafka.log.append(f"begin {self.of}")
        if self.kafka.unreachable:
            raise KafkaUnreachable("away")
        return not self.kafka.committed

    def is_committed(self) -> bool:
        self.kafka.log.append(f"look {self.of}")
        return self.kafka.committed

    def send(self, records: pa.RecordBatch) -> None:
        self.kafka.log.append(f"send {records.num_rows}")
        self.kafka.values += records["value"].to_pylist()

    def commit(self, source_ranges: bytes, plan: bytes) -> WriteReport:
        if self.kafka.expired:
            raise TransactionExpired("too late")
        if self.kafka.refusing == self.query:
            raise MessageTooLarge("topic out refused the records", refused={"out": Refused(500)})
        self.kafka.log.append(f"commit {source_ranges.hex()}")
        self.kafka.written_by.append(self.query)
        self.kafka.plans.append(plan)
        return WriteReport(outcome="replayed" if self.kafka.committed else "committed")

    def abort(self) -> None:
        self.kafka.log.append("abort")


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    made = Kafka()
    monkeypatch.setattr(transactions, "TransactionClient", made.client)
    return made


@pytest.fixture
def spec(tmp_path: Path) -> JobSpec:
    """A job with one level that writes to one cluster."""
    program = compile_job(read(PIPELINE).jobs[0])
    [output] = program.outputs
    settings = WriterSettings(
        query="counts", checkpoint_id="c", kafka={}, marker_topic="markers", socket_folder="", parent_pid=os.getpid()
    )
    return replace(
        job_spec(program),
        encoders={output.id: encoder(output.table, output.columns, "counts", output.key)},
        writers=(settings,),
        writer_of={output.id: 0},
        scratch=str(tmp_path),
        run="r1",
    )


def changes(spec: JobSpec, tables: Sequence[pa.Table]) -> Iterator[Envelope]:
    """The changes of the job's output."""
    [output] = spec.program.outputs
    for number, table in enumerate(tables):
        yield envelope(Kind.OUTPUT, output.id, number, pack(table))


def source_ranges(ranges: bytes = b"r" * 8) -> list[Envelope]:
    """What comes behind the changes of a task."""
    return [
        envelope(Kind.OFFSETS, 1, 100, ranges),
        envelope(Kind.METRICS, 1, 101, TaskMetrics({"rows": 2}).to_json()),
        envelope(Kind.STATE, 1, 102, b"state"),
    ]


def envelope(kind: Kind, address: int, number: int, payload: bytes) -> Envelope:
    return Envelope(1, EGRESS, kind, address, "l001/s00001", number, NOW, MIN_TIME, True, payload)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("together", [1, 100, 1 << 20])
def test_records_do_not_depend_on_how_changes_are_cut(
    spec: JobSpec, size: int, together: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(egress, "TOGETHER", together)
    job, metrics = WorkerJob(spec), TaskMetrics()
    cut = Egress(job, Sql(), metrics)
    pieces = [UPDATES.slice(i, size) for i in range(0, UPDATES.num_rows, size)]
    found = [*(w for e in changes(spec, pieces) for w in cut.take(e)), *cut.finish()]
    whole = Egress(job, Sql(), TaskMetrics())
    expected = [*(w for e in changes(spec, [UPDATES]) for w in whole.take(e)), *whole.finish()]
    assert rows(found) == rows(expected)
    assert sum('"op":"u"' in str(value) for value in values(found)) == 2
    assert metrics.counts['output_changes_total{sink="counts",kind="insert"}'] == 3


class Choosy:
    """Encodes as another encoder does, but for rows that it cannot: those of one id it names, those of another not."""

    def __init__(self, within: Encoder, named: int, unnamed: int) -> None:
        self._within, self._named, self._unnamed = within, named, unnamed

    def encode(self, changes: pa.Table, sql: Sql) -> pa.Table:
        ids = changes["c0"].to_pylist()
        if self._unnamed in ids:
            raise RuntimeError("out of order")
        if self._named in ids:
            bad = [place for place, each in enumerate(ids) if each == self._named]
            raise NotEncodable(np.array(bad), ["too odd"] * len(bad))
        return self._within.encode(changes, sql)


def test_rows_that_cannot_be_encoded_are_dead_letters_of_the_same_transaction(spec: JobSpec, kafka: Kafka):
    ((output, within),) = spec.encoders.items()
    changed = replace(spec, dead_letter_topic="dead", side_writer=0, samples=9, encoders={output: Choosy(within, 2, 4)})
    for attempt in (0, 1):
        kafka.log, kafka.values = [], []
        report = write_output(
            WorkerJob(changed), [*changes(spec, [UPDATES]), *source_ranges()], AT._replace(attempt=attempt)
        )
        assert kafka.log[-1] == f"commit {digest(NOW, [b'r' * 8]).hex()}"
        assert sorted(value or b"" for value in kafka.values) == [
            b'{"before":null,"after":{"id":1,"n":10},"op":"c"}',
            b'{"before":{"id":3,"n":30},"after":{"id":3,"n":31},"op":"u"}',
            b'{"id":2,"n":20,"_weight":-1}',
            b'{"id":2,"n":21,"_weight":1}',
            b'{"id":4,"n":40,"_weight":-1}',
        ]
        assert report is not None
        shown = [(each["reason"], each["detail"], each["origin"]) for each in report.samples]
        assert shown == [("not-encodable", why, "sink counts") for why in ("too odd", "too odd", "out of order")]
        counts = TaskMetrics()
        counts.absorb(report.metrics)
        assert counts.counts['dead_letter_records_total{topic="dead",reason="not-encodable"}'] == 3
        assert counts.counts['dead_records_total{operator="sink counts"}'] == 3


def test_a_dead_letter_is_no_larger_than_its_topic_takes(spec: JobSpec):
    dead = pa.table(
        {
            "value": [b"x" * 50_000],
            "key": [b"k"],
            "topic": ["t"],
            "partition": [0],
            "offset": [7],
            "reason": ["bad-json"],
            "detail": ["no JSON"],
        }
    )
    limited = replace(spec, dead_letter_topic="dead", side_writer=0, side_bytes=10_000)
    found = list(Egress(WorkerJob(limited), Sql(), TaskMetrics()).take(envelope(Kind.DEAD_RECORDS, 0, 1, pack(dead))))
    (value,) = values(found)
    assert value is not None
    assert 0 < len(value) < 10_000


def test_dead_letters_are_committed_after_what_they_are_not_in(spec: JobSpec, kafka: Kafka):
    """A sink that refuses a record leaves no dead letters behind that lack it."""
    ((output, within),) = spec.encoders.items()
    elsewhere = replace(spec.writers[0], query="elsewhere")
    changed = replace(
        spec,
        dead_letter_topic="dead",
        writers=(elsewhere, *spec.writers),
        side_writer=0,
        writer_of={output: 1},
        encoders={output: Choosy(within, 2, 4)},
    )
    write_output(WorkerJob(changed), [*changes(spec, [UPDATES]), *source_ranges()], AT)
    assert kafka.written_by == ["counts", "elsewhere"]


@pytest.mark.parametrize(("query", "number"), [("counts", 0), ("elsewhere", 1)])
def test_a_refusal_says_which_writer_has_sent_the_records(spec: JobSpec, kafka: Kafka, query: str, number: int):
    """Topics of two clusters may have one name."""
    elsewhere = replace(spec.writers[0], query="elsewhere")
    changed = replace(spec, writers=(*spec.writers, elsewhere), writer_of=dict.fromkeys(spec.encoders, number))
    kafka.refusing = query
    with pytest.raises(MessageTooLarge) as raised:
        write_output(WorkerJob(changed), [*changes(spec, [UPDATES]), *source_ranges()], AT)
    assert raised.value.for_driver == {f"{number}/out": (500, 0)}


def test_one_transaction_is_committed_of_all_that_a_task_writes(spec: JobSpec, kafka: Kafka):
    report = write_output(WorkerJob(spec), [*changes(spec, [UPDATES]), *source_ranges()], AT)
    assert kafka.log == ["begin 1/7", "send 4", f"commit {digest(NOW, [b'r' * 8]).hex()}"]
    assert report is not None
    assert report.state == (b"state",)
    counts = TaskMetrics()
    counts.absorb(report.metrics)
    assert counts.counts["rows"] == 2
    assert BatchPlan.from_bytes(kafka.plans[0]) == replace(PLAN, digest=digest(NOW, [b"r" * 8]).hex())
    assert counts.counts['transactions_total{outcome="committed"}'] == 1


def test_what_an_earlier_attempt_has_committed_is_computed_and_not_written(spec: JobSpec, kafka: Kafka):
    kafka.committed = True
    report = write_output(WorkerJob(spec), [*changes(spec, [UPDATES]), *source_ranges()], AT._replace(attempt=1))
    assert kafka.log == ["begin 1/7", f"commit {digest(NOW, [b'r' * 8]).hex()}"]
    assert report is not None
    assert report.state == (b"state",)


def test_a_task_that_heard_nothing_reports_nothing(spec: JobSpec, kafka: Kafka):
    assert write_output(WorkerJob(spec), [], AT) is None
    assert kafka.log == []


@pytest.fixture
def stateless(spec: JobSpec) -> JobSpec:
    """A job without levels that reads in two tasks, and writes as the other one does."""
    program = compile_job(read(STATELESS).jobs[0])
    [output] = program.outputs
    encoders = {output.id: encoder(output.table, output.columns, "evens", output.key)}
    return replace(spec, program=program, readers=2, encoders=encoders, writer_of={output.id: 0})


def test_without_levels_the_first_task_leaves_a_marker_of_a_range_without_records(stateless: JobSpec, kafka: Kafka):
    assert write_output(WorkerJob(stateless), [], AT) is None
    report = write_output(WorkerJob(stateless), [], AT._replace(task=0))
    mark = digest(NOW, []).hex()
    assert kafka.log == ["begin 0/7", f"commit {mark}"]
    assert BatchPlan.from_bytes(kafka.plans[0]) == replace(PLAN, digest=mark)
    assert report is not None
    assert report.state == ()


def test_where_tasks_go_by_kafka_partition_one_without_records_has_no_place_for_a_marker(
    stateless: JobSpec, kafka: Kafka
):
    assert write_output(WorkerJob(replace(stateless, readers=0)), [], AT._replace(task=0)) is None
    assert kafka.log == []


def test_a_task_with_nothing_to_write_opens_no_transaction(spec: JobSpec, kafka: Kafka):
    report = write_output(WorkerJob(spec), source_ranges(), AT)
    assert report is not None
    assert report.state == (b"state",)
    assert kafka.log == []


def test_the_first_task_of_a_batch_leaves_a_marker_in_any_case(spec: JobSpec, kafka: Kafka):
    write_output(WorkerJob(spec), source_ranges(), AT._replace(task=0))
    assert kafka.log == ["begin 0/7", f"commit {digest(NOW, [b'r' * 8]).hex()}"]


@pytest.mark.parametrize(
    "changed", [{"replayed": AT.number}, {"one_host": False}], ids=["a batch that may have begun", "several hosts"]
)
def test_where_another_attempt_may_have_had_rows_the_marker_is_written_without_any(
    spec: JobSpec, kafka: Kafka, changed: dict[str, Any]
):
    write_output(WorkerJob(replace(spec, **changed)), source_ranges(), AT)
    assert kafka.log == ["begin 1/7", f"commit {digest(NOW, [b'r' * 8]).hex()}"]


def test_a_batch_done_again_for_an_older_copy_is_written_by_those_who_wrote_it(spec: JobSpec, kafka: Kafka):
    for redone in ({0: "aa"}, {1: "aa"}):
        write_output(WorkerJob(replace(spec, replayed=AT.number, redone=redone)), source_ranges(), AT)
    assert kafka.log == ["begin 1/7", f"commit {digest(NOW, [b'r' * 8]).hex()}"]


def test_the_second_attempt_of_a_task_writes_its_marker_without_any_row(spec: JobSpec, kafka: Kafka):
    job = WorkerJob(spec)
    kafka.unreachable = True
    with pytest.raises(KafkaUnreachable):
        write_output(job, [*changes(spec, [UPDATES]), *source_ranges()], AT)
    kafka.unreachable, kafka.log = False, []
    write_output(job, source_ranges(b"o" * 8), AT._replace(attempt=1))
    assert kafka.log == ["begin 1/7", f"commit {digest(NOW, [b'o' * 8]).hex()}"]


def test_what_is_more_than_a_task_holds_is_sent_while_the_rest_is_computed(spec: JobSpec, kafka: Kafka):
    seen: list[list[str]] = []
    with TaskTransactions(WorkerJob(spec), 1, 7, TaskMetrics(), again=False, held=100) as open_:
        for _ in range(4):
            open_.write(WriterRecords(0, records(6)))
            seen.append(list(kafka.log))
        open_.commit(b"d", b"", may_skip=True)
    assert seen == [[], ["begin 1/7", "send 6", "send 6"], ["begin 1/7", "send 6", "send 6"], [*"", *seen[3]]]
    assert kafka.log == ["begin 1/7", *["send 6"] * 4, "commit 64"]


def test_an_attempt_that_fails_leaves_no_transaction_open(spec: JobSpec, kafka: Kafka):
    open_ = TaskTransactions(WorkerJob(spec), 1, 7, TaskMetrics(), again=False, held=10)

    def failing() -> None:
        with open_:
            open_.write(WriterRecords(0, records(50)))
            raise MemoryError

    with pytest.raises(MemoryError):
        failing()
    assert kafka.log == ["begin 1/7", "send 50", "abort"]


def test_another_attempt_sends_nothing_until_its_batch_is_computed(
    spec: JobSpec, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(egress, "TOGETHER", 1)
    monkeypatch.setattr("service.spark.query.task_output.HELD", 1)

    def computing() -> Iterator[Envelope]:
        for each in [*changes(spec, [UPDATES, UPDATES]), *source_ranges()]:
            yield each
            assert kafka.log in ([], ["look 1/7"])

    write_output(WorkerJob(spec), computing(), AT._replace(attempt=1))
    assert kafka.log[:2] == ["look 1/7", "begin 1/7"]
    written = list(kafka.values)
    kafka.log, kafka.values = [], []
    write_output(WorkerJob(replace(spec, run="r2")), [*changes(spec, [UPDATES, UPDATES]), *source_ranges()], AT)
    assert "look 1/7" not in kafka.log, "the first attempt"
    assert written == kafka.values


def test_another_attempt_holds_no_more_than_the_first_whatever_it_writes(spec: JobSpec, kafka: Kafka):
    block = records(100_000)
    before, sent = pa.total_allocated_bytes(), 20
    with TaskTransactions(WorkerJob(spec), 1, 7, TaskMetrics(), again=True, held=2 * block.nbytes) as open_:
        for number in range(sent):
            open_.write(WriterRecords(0, pa.record_batch({**columns(100_000), "timestamp": [number] * 100_000})))
            assert pa.total_allocated_bytes() - before < 5 * block.nbytes
        assert kafka.log == ["look 1/7"]
        open_.commit(b"d", b"", may_skip=False)
    assert kafka.log == ["look 1/7", "begin 1/7", *["send 100000"] * sent, "commit 64"]
    assert not [path for path in Path(spec.scratch).rglob("*") if path.is_file()], "nothing stays on the disk"


def test_once_a_transaction_was_open_for_too_long_the_next_batches_open_theirs_when_all_is_computed(
    spec: JobSpec, kafka: Kafka
):
    job = WorkerJob(spec)
    job.folder.mkdir(parents=True)

    def written(batch: int) -> list[str]:
        kafka.log = []
        with TaskTransactions(job, 1, batch, TaskMetrics(), again=False, held=10) as open_:
            open_.write(WriterRecords(0, records(50)))
            before = list(kafka.log)
            open_.commit(b"d", b"", may_skip=True)
        return before

    assert written(7) == ["begin 1/7", "send 50"]
    kafka.expired = True
    with pytest.raises(TransactionExpired):
        written(8)
    kafka.expired = False
    assert written(8) == ["look 1/8"]
    assert written(9) == ["look 1/9"]
    assert kafka.log == ["look 1/9", "begin 1/9", "send 50", "commit 64"]


def test_another_attempt_drops_what_an_earlier_one_has_committed(spec: JobSpec, kafka: Kafka):
    kafka.committed = True
    with TaskTransactions(WorkerJob(spec), 1, 7, TaskMetrics(), again=True, held=10) as open_:
        for _ in range(3):
            open_.write(WriterRecords(0, records(50)))
        open_.commit(b"d", b"", may_skip=True)
    assert kafka.log == ["look 1/7", "begin 1/7", "commit 64"]


def test_a_marker_that_is_gone_again_does_not_end_a_batch_whose_records_were_dropped(spec: JobSpec, kafka: Kafka):
    open_ = TaskTransactions(WorkerJob(spec), 1, 7, TaskMetrics(), again=True, held=10)

    def failing() -> None:
        with open_:
            kafka.committed = True
            open_.write(WriterRecords(0, records(50)))
            kafka.committed = False
            open_.commit(b"d", b"", may_skip=True)

    with pytest.raises(TransactionLost, match="existed and is now missing"):
        failing()
    assert kafka.log == ["look 1/7", "begin 1/7", "abort"]


def records(count: int) -> pa.RecordBatch:
    """Records of about ten bytes each."""
    return pa.record_batch(columns(count))


def columns(count: int) -> dict[str, Any]:
    return {"topic": ["t"] * count, "value": pa.array([b"v"] * count, pa.binary())}


def values(found: Sequence[WriterRecords]) -> list[bytes | None]:
    return [value for each in found for value in each.records["value"].to_pylist()]


def rows(found: Sequence[WriterRecords]) -> list[tuple[int, dict[str, Any]]]:
    return [(each.writer, row) for each in found for row in each.records.to_pylist()]
