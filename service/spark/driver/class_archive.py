"""The archive of Java classes: what Spark loads at its start, parsed and verified, for the JVM to map into memory.

`python -m service.spark.driver.class_archive` makes it beside the Java archives, from the classes that a small pipeline
loads. It halves the time until a query starts. It is only a copy: a JVM that cannot use it loads the classes as usual.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Producer

from service.archives import ensure, load
from service.archives.class_archive import CREATE, put
from service.kafka.local_broker.broker import EmbeddedKafka
from service.spark.driver.class_path import archive_of_classes, spark_home
from service.spark.driver.java_classes import own_classes

_TOPIC = "numbers"
_ROWS = 1000
"""The rows that the pipeline reads: it loads the same classes for few and for many."""

_PIPELINE = """
CREATE TABLE numbers (n BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', WATERMARK FOR at AS at) WITH (
  'connector' = 'kafka', 'topic' = 'numbers', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset');
CREATE TABLE counts (n BIGINT, rows_seen BIGINT, PRIMARY KEY (n) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'counts', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO counts SELECT n % 10, COUNT(*) FROM numbers GROUP BY n % 10;
"""


def main() -> int:
    """Make the archive for this Java and these packages, if it is missing. Return the exit code."""
    folder = Path(os.environ["TAILRACE_ARCHIVES"]) if os.environ.get("TAILRACE_ARCHIVES") else None
    jars = [*ensure(load("spark"), folder)]
    jars.append(own_classes(jars, spark_home() / "jars"))
    target = archive_of_classes(jars)
    if target.exists():
        return 0
    print("making an archive of Java classes (once; half a minute)", file=sys.stderr)
    part = target.with_suffix(".part")
    with tempfile.TemporaryDirectory(prefix="tailrace-classes-") as scratch, EmbeddedKafka() as kafka:
        _fill(kafka.bootstrap)
        trouble = _run(Path(scratch), kafka.bootstrap, f"{CREATE}{part}")
    put(part, target, trouble)
    return 0


def _fill(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(_ROWS):
        producer.produce(_TOPIC, json.dumps({"n": number}))
    producer.flush()


def _run(scratch: Path, bootstrap: str, java_option: str) -> str:
    """Run the pipeline in a process of its own. Return its last output if it fails."""
    file = scratch / "pipeline.sql"
    file.write_text(_PIPELINE)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TAILRACE_")},
        "TAILRACE_KAFKA__BOOTSTRAP_SERVERS": bootstrap,
        "TAILRACE_CHECKPOINT": str(scratch / "checkpoint"),
        "TAILRACE_HTTP__PORT": "0",
        "TAILRACE_TOPICS__CREATE": "true",
        "TAILRACE_SPARK__CONF": json.dumps({"spark.driver.extraJavaOptions": java_option}),
    }
    if os.environ.get("TAILRACE_ARCHIVES"):
        environment["TAILRACE_ARCHIVES"] = os.environ["TAILRACE_ARCHIVES"]
    command = [sys.executable, "-m", "service", "run", str(file)]
    try:
        ran = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    except subprocess.TimeoutExpired:
        return "(the pipeline did not end)"
    return f"({ran.stderr.decode(errors='replace').strip()[-500:]})" if ran.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
