"""What we rely on of Spark, PySpark and py4j without their promise. After an upgrade these tests fail first, and each
says what has changed; docs/design/internals.md says what rests on it."""

from __future__ import annotations

import importlib.util
import inspect
import io
import os
import re
import signal
import socket
import struct
import sys
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from py4j.java_gateway import JavaObject, JavaPackage
from pyspark import serializers, util
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import SimpleDataSourceStreamReader
from pyspark.sql.streaming.query import StreamingQuery

from service.archives import ensure, load
from service.kafka.errors import KafkaUnreachable
from service.observability.metrics.store import Metrics
from service.spark.driver import object_store
from service.spark.driver.class_path import spark_home
from service.spark.driver.java_classes import SOURCES, own_classes
from service.spark.internals import jvm, workers
from service.spark.internals.arrow_functions import allow_without_pandas
from service.spark.internals.callbacks import open_callbacks
from service.spark.internals.compiler import COMPILER
from service.spark.internals.failures import (
    EXECUTOR_LOST,
    OUTPUT_LOST,
    PYTHON_ERROR,
    WORKER_READER,
    Ended,
    failure_of,
    noted,
)
from service.spark.query.query import KAFKA
from service.spark.query.task_batch import NOW, TaskBatch
from service.spark.supervision.checkpoint import Checkpoint
from service.spark.supervision.driver_metrics import DriverMetrics
from service.spark.supervision.failure_classes import REFUSED, UNREACHABLE, is_of_memory
from service.spark.supervision.jobs import summary
from service.spark.supervision.reports import Reports
from tests.brokers import Broker, MakeTopic

PLACEMENT = "tailrace.placement.Placement"
FETCH_SIZES = "tailrace.kafka.FetchSizes"
KAFKA_CONSUMER = "org.apache.kafka.clients.consumer.KafkaConsumer"

ROOT = Path(__file__).parents[2]
DESIGN = ROOT / "docs" / "design" / "internals.md"

PATIENCE = 180.0
"""Seconds that a query may take for its first batches where the machine is busy."""


def test_the_modules_that_spark_starts_are_where_they_were():
    for name in (workers.DAEMON, workers.WORKER, *workers.HELPERS):
        assert importlib.util.find_spec(name) is not None, name
    assert inspect.signature(workers.daemon_manager()).parameters == {}


def test_the_name_of_a_workers_socket_is_as_long_as_we_think():
    daemon = importlib.util.find_spec(workers.DAEMON)
    assert daemon is not None
    assert daemon.origin is not None
    assert 'f".{uuid.uuid4()}.sock"' in Path(daemon.origin).read_text()
    assert len(workers.SOCKET_NAME) == len(f".{uuid.uuid4()}.sock")


def test_a_worker_prints_the_notes_of_an_error_behind_its_own_words():
    try:
        with noted():
            raise KafkaUnreachable("no answer")
    except KafkaUnreachable as error:
        printed = io.BytesIO()
        util.handle_worker_exception(error, printed)
    code, length = struct.unpack_from(">ii", printed.getvalue())
    assert code == serializers.SpecialLengths.PYTHON_EXCEPTION_THROWN
    text = printed.getvalue()[8 : 8 + length].decode()
    assert text.splitlines()[-1].startswith("  tailrace-failure ")


def test_the_file_of_the_gateway_is_a_port_and_a_secret():
    content = struct.pack(">ii", 4711, 6) + b"secret"
    assert workers.gateway_address(content) == {"PYSPARK_GATEWAY_PORT": "4711", "PYSPARK_GATEWAY_SECRET": "secret"}
    launched = (spark_home() / "java_gateway.py").read_text()
    for name in (workers.CONNECTION_FILE, workers.GATEWAY_PORT, workers.GATEWAY_SECRET):
        assert name in launched, name


def test_sparks_data_source_has_the_methods_that_ours_replaces():
    assert {"read", "readBetweenOffsets", "initialOffset", "commit"} <= set(dir(SimpleDataSourceStreamReader))


def test_the_java_classes_that_we_know_by_name_are_there():
    known = [workers.GATEWAY, COMPILER, jvm.READ_LIMIT, *UNREACHABLE, *REFUSED]
    known += [f"org.apache.spark.{EXECUTOR_LOST}", OUTPUT_LOST, PYTHON_ERROR, WORKER_READER]
    missing = {name.replace(".", "/") + ".class" for name in known}
    own = spark_home() / "jars"
    for jar in (
        *own.glob("spark-*.jar"),
        *own.glob("janino*.jar"),
        *(ROOT / ".cache" / "archives").rglob("*kafka*.jar"),
    ):
        with zipfile.ZipFile(jar) as archive:
            missing -= set(archive.namelist())
    assert missing == set()


def test_our_own_classes_are_where_they_are_named():
    for name in (
        jvm.KAFKA_SOURCE,
        KAFKA,
        jvm.REPORTS,
        PLACEMENT,
        FETCH_SIZES,
        object_store.FOLDER_FILES,
        object_store.STORE_FILES,
    ):
        assert (SOURCES / name.replace(".", "/")).with_suffix(".java").is_file(), name


def test_every_private_name_that_we_use_stands_in_the_page_and_in_one_module_only():
    """Of the objects of PySpark; a name that begins with an underscore is nobody's promise."""
    private = re.compile(r"\b(?:session|sparkContext|context|query|error)\.(_[a-z]\w*)")
    found: dict[str, set[str]] = {}
    for path in (ROOT / "service" / "spark").rglob("*.py"):
        for name in private.findall(path.read_text()):
            found.setdefault(name, set()).add(path.relative_to(ROOT / "service" / "spark").parts[0])
    assert set(found) == {"_jvm", "_jsc", "_jsq", "_gateway", "_origin", "_cause"}
    assert {room for rooms in found.values() for room in rooms} == {"internals"}
    page = DESIGN.read_text()
    for name in (*found, *workers.HELPERS, workers.DAEMON, workers.GATEWAY, workers.CONNECTION_FILE):
        assert f"`{name}`" in page, name


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session of the tests' own, in a JVM that PySpark starts; its workers import what this file does."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        yield from _session()


def _session() -> Iterator[SparkSession]:
    archives = ensure(load("spark"))
    ours = own_classes(archives, spark_home() / "jars")
    settings: dict[str, Any] = {
        "spark.ui.enabled": "false",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, (ours, *archives))),
        **object_store.required(""),
        workers.UNIX_SOCKETS: "true",
    }
    session = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    allow_without_pandas()
    yield session
    session.stop()


def protocols(blocks: Iterator[Any]) -> Iterator[Any]:
    """Name the protocol of each socket of a worker, found by its number in the tables of the system."""
    yield from ()  # a task of Spark's gives rows
    names = {f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")}
    links = {os.readlink(name) for name in names if os.path.exists(name) or os.path.islink(name)}
    numbers = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    for block in blocks:
        tables = {name: Path(f"/proc/self/net/{name}").read_text().split() for name in ("unix", "tcp", "tcp6")}
        found = [name for name, words in tables.items() if numbers & set(words)]
        yield pa.RecordBatch.from_pydict({"id": [",".join(found)] * block.num_rows})


def unreachable(blocks: Iterator[Any]) -> Iterator[Any]:
    """Fail as a task does that finds no broker."""
    yield from ()  # a task of Spark's gives rows
    with noted():
        for _ in blocks:
            pass
        raise KafkaUnreachable("no answer")


def exiting(blocks: Iterator[Any]) -> Iterator[Any]:
    """End the worker in the middle of a task."""
    yield from ()  # a task of Spark's gives rows
    for _ in blocks:
        os._exit(1)


def killed(blocks: Iterator[Any]) -> Iterator[Any]:
    """End the worker as the kernel does that has no memory left."""
    yield from ()
    for _ in blocks:
        os.kill(os.getpid(), signal.SIGKILL)


def quoting(blocks: Iterator[Any]) -> Iterator[Any]:
    """Fail of a record that has the words of another failure in it."""
    yield from ()
    for _ in blocks:
        raise ValueError(f"(TID 1) (host executor 2): {EXECUTOR_LOST} Python worker exited unexpectedly (crashed)")


Start = Callable[..., StreamingQuery]


@pytest.fixture
def start(spark: SparkSession, tmp_path: Path) -> Iterator[Start]:
    """Starts a query over made-up rows."""
    queries = []

    def begin(task: Callable[[Iterator[Any]], Iterator[Any]] | None = None) -> StreamingQuery:
        rows = spark.readStream.format("rate").load()
        made = rows if task is None else rows.mapInArrow(task, rows.schema)
        writer = made.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        queries.append(writer.start())
        return queries[-1]

    yield begin
    for query in queries:
        query.stop()


def refuse_packages(package: JavaPackage, name: str) -> None:
    """Stand in for what py4j does with `jvm.package.name`."""
    raise AssertionError(f"a name is looked for in every archive: {package._fqn}.{name}")


@pytest.mark.e2e
def test_the_driver_asks_the_jvm_for_classes_and_never_for_packages(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(JavaPackage, "__getattr__", refuse_packages)
    checkpoint = Checkpoint(spark, str(tmp_path))
    checkpoint.write("id", "a")
    assert (checkpoint.identifier(), checkpoint.begun(), checkpoint.started()) == ("a", None, False)
    DriverMetrics(spark, Metrics(), tmp_path).look()


@pytest.mark.e2e
def test_the_members_that_lead_into_the_jvm_do_so(spark: SparkSession):
    assert jvm.java_class(spark, "java.lang.System").getProperty("java.version")
    assert jvm.hadoop_configuration(spark).get("fs.defaultFS") == "file:///"
    assert "defaultFS" in dict(jvm.hadoop_configuration(spark).getPropsWithPrefix("fs."))
    assert list(jvm.active_executors(spark)) == ["driver"]


@pytest.mark.e2e
def test_kafkas_client_asks_for_as_much_as_it_is_told_before_each_request(
    spark: SparkSession, kafka: Broker, make_topic: MakeTopic
):
    def java(name: str) -> JavaObject:
        return jvm.java_class(spark, name)

    topic = make_topic(partitions=1)
    # Only the number of records ends a batch: by the producer's own 5 ms a busy machine would make shorter ones.
    whole = {"batch.num.messages": 10, "linger.ms": 60_000}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, **whole})
    for _ in range(12_000):
        producer.produce(topic, b"x" * 100)
    assert producer.flush(60) == 0
    settings = java("java.util.HashMap")()
    settings.put("bootstrap.servers", kafka.bootstrap)
    for name in ("key.deserializer", "value.deserializer"):
        settings.put(name, "org.apache.kafka.common.serialization.ByteArrayDeserializer")
    consumer = java(KAFKA_CONSUMER)(settings)
    places = java("java.util.ArrayList")()
    places.add(java("org.apache.kafka.common.TopicPartition")(topic, 0))
    consumer.assign(places)
    consumer.seekToBeginning(places)

    def polled() -> int:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            count = int(consumer.poll(java("java.time.Duration").ofMillis(500)).count())
            if count:
                return count
        raise AssertionError("no record came")

    sizes = java(FETCH_SIZES)(consumer, 100, 1 << 20)
    assert sizes.areReachable()
    sizes.begin()
    left = 12_000
    while left:
        count = polled()
        sizes.received(count, 100 * count)
        left -= count
    consumer.seekToBeginning(places)
    sizes.ask(12, 1 << 20, 500)
    # 1,122 bytes at most, of batches that have 10 records of 100 bytes each.
    assert polled() == 10
    sizes.ask(1_000_000, 1 << 20, 7)
    # What is asked for after these is all that is left.
    assert [polled(), polled()] == [7, 3]
    sizes.ask(1_000_000, 1 << 20, 2_000)
    assert polled() > 500
    consumer.close()


@pytest.mark.e2e
def test_a_worker_speaks_with_the_jvm_over_a_unix_socket(spark: SparkSession):
    found = spark.range(0, 1, 1, 1).mapInArrow(protocols, "id string").collect()
    assert [row["id"] for row in found] == ["unix"]


@pytest.mark.e2e
def test_a_running_query_reports_its_progress_and_takes_a_limit_for_its_sources(spark: SparkSession, start: Start):
    query = start()
    reports = Reports(query)
    until = time.monotonic() + PATIENCE
    while reports.last_batch() < 0:
        assert time.monotonic() < until, "no batch"
        time.sleep(0.1)
    last = reports.last()
    assert last is not None
    assert {"batchId", "sources", "durationMs", "timestamp"} <= set(last)
    assert jvm.set_read_limits(spark, query, {}) == 0, "none of its sources is Kafka's"
    sources = jvm.java_query(query).streamingQuery().uniqueSources()
    assert sources.size() == 1
    assert sources.updated(sources.keysIterator().next(), None).size() == 1


@pytest.mark.e2e
def test_a_failure_of_a_task_comes_with_its_note_and_as_a_chain_of_exceptions(start: Start):
    query = start(unreachable)
    until = time.monotonic() + PATIENCE
    while query.exception() is None:
        assert time.monotonic() < until, "no failure"
        time.sleep(0.1)
    error = query.exception()
    assert error is not None
    failure = failure_of(error)
    assert failure.raised(KafkaUnreachable)
    assert failure.java[0][0] == "org.apache.spark.api.python.PythonException"
    assert failure.thrown("java.lang.Throwable"), "the classes above it are known"


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("task", "process"), [(exiting, Ended.WORKER), (killed, Ended.WORKER), (unreachable, None), (quoting, None)]
)
def test_a_worker_that_ends_is_distinguished_from_one_that_fails(
    start: Start, task: Callable[[Iterator[Any]], Iterator[Any]], process: Ended | None
):
    query = start(task)
    until = time.monotonic() + PATIENCE
    while query.exception() is None:
        assert time.monotonic() < until, "no failure"
        time.sleep(0.1)
    error = query.exception()
    assert error is not None
    failure = failure_of(error)
    assert failure.ended is process
    assert is_of_memory(failure) is (process is not None)


@pytest.mark.e2e
def test_an_executor_that_ends_is_named_in_the_place_of_an_exception(spark: SparkSession):
    code = jvm.java_class(spark, "scala.Some")("Command exited with code 137")
    lost = jvm.java_class(spark, "org.apache.spark.ExecutorLostFailure")("1", True, code)
    at = "most recent failure: Lost task 0.0 in stage 4.0 (TID 4) (10.0.0.7 executor 1): "
    assert failure_of(RuntimeError(at + lost.toErrorString())).ended is Ended.EXECUTOR
    failed_fetch = jvm.java_class(spark, "org.apache.spark.shuffle.MetadataFetchFailedException")
    missing = failed_fetch(0, 0, "Missing an output location")
    text = f"Most recent failure reason:\n{missing.toString()}\n\tat a.B.c(B.scala:1)"
    assert failure_of(RuntimeError(text)).ended is Ended.EXECUTOR


def properties(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Two rows a task: what the driver has said of the batch, and its number."""
    for _ in blocks:
        pass
    at = TaskBatch.current()
    yield pa.record_batch({"report": pa.array([b"%d" % at.now, b"%d" % at.number])})


@pytest.mark.e2e
def test_spark_calls_the_driver_once_a_batch_and_takes_along_what_it_says_to_the_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    open_callbacks(spark)
    open_callbacks(spark)
    received: list[tuple[int, list[bytes]]] = []

    def end(rows: DataFrame, batch: int) -> None:
        rows.sparkSession.sparkContext.setLocalProperty(NOW, str(1_000 + batch))
        with monkeypatch.context() as during:
            during.setattr(JavaPackage, "__getattr__", refuse_packages)
            received.append((batch, jvm.collected(rows, "counts")))

    rows = spark.readStream.format("rate").load().mapInArrow(properties, "report BINARY")
    query = rows.writeStream.foreachBatch(end).option("checkpointLocation", str(tmp_path)).start()
    until = time.monotonic() + PATIENCE
    while len(received) < 3:
        assert time.monotonic() < until, query.exception()
        time.sleep(0.1)
    query.stop()
    for number, (batch, collected) in enumerate(received):
        assert batch == number
        assert collected in ([], [b"%d" % (1_000 + batch), b"%d" % batch])
    assert any(collected for _, collected in received)
    # Spark's own logs are files of ours: nobody else may write them, and no process was needed for that.
    for log in ("offsets", "commits"):
        assert (tmp_path / log / "0").stat().st_mode & 0o777 == 0o644


@pytest.mark.e2e
def test_nobody_else_may_call_the_driver(spark: SparkSession):
    open_callbacks(spark)
    gateway: Any = spark.sparkContext._gateway
    port = gateway._callback_server.port
    with socket.create_connection(("127.0.0.1", port), 10) as stranger:
        stranger.sendall(b"c\np0\ncall\ne\n")
        with suppress(ConnectionResetError):
            assert stranger.recv(100) == b""


@pytest.mark.e2e
def test_the_jvm_sends_all_parts_of_an_answer_to_the_driver_at_once(spark: SparkSession):
    open_callbacks(spark)
    gateway: Any = spark.sparkContext._gateway
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getGateway().getCallbackClient()
    member = jvm.java_class(spark, "java.lang.Class").forName("py4j.CallbackClient").getDeclaredField("socketFactory")
    member.setAccessible(True)
    connection = member.get(client).createSocket("127.0.0.1", gateway._callback_server.port)
    try:
        assert connection.isConnected()
        assert connection.getTcpNoDelay()
    finally:
        connection.close()


def failed_at_driver(spark: SparkSession, folder: Path, task: Callable[[Iterator[Any]], Iterator[Any]]) -> Exception:
    """What the function of the driver caught that asked for the rows of a task which fails."""
    open_callbacks(spark)
    failures: list[Exception] = []

    def end(rows: DataFrame, batch: int) -> None:
        try:
            jvm.collected(rows, "counts")
        except Exception as error:
            failures.append(error)
            raise

    rows = spark.readStream.format("rate").load().mapInArrow(task, "report BINARY")
    query = rows.writeStream.foreachBatch(end).option("checkpointLocation", str(folder)).start()
    until = time.monotonic() + PATIENCE
    while query.exception() is None:
        assert time.monotonic() < until, "no failure"
        time.sleep(0.1)
    return failures[0]


@pytest.mark.e2e
def test_what_a_function_of_the_driver_fails_of_is_known_as_a_chain_of_exceptions(spark: SparkSession, tmp_path: Path):
    error = failed_at_driver(spark, tmp_path, unreachable)
    failure = failure_of(error)
    assert failure.raised(KafkaUnreachable)
    assert failure.thrown("java.lang.Throwable"), "the classes above it are known"
    assert "KafkaUnreachable: no answer" in summary(error)


@pytest.mark.e2e
def test_a_worker_that_ends_is_known_to_a_function_of_the_driver(spark: SparkSession, tmp_path: Path):
    assert failure_of(failed_at_driver(spark, tmp_path, exiting)).ended is Ended.WORKER
