"""All that a run writes for itself is in one folder, which goes with the run, however it ends."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

from service.spark.driver.jvm import temporary_folder
from tests.brokers import Broker, MakeTopic
from tests.spark.service_process import ServiceProcess, command_of, descendants, signal_to
from tests.spark.topics import feed, read

PIPELINE = """
    CREATE TABLE t (name STRING) WITH ('connector' = 'kafka', 'topic' = '{source}', 'format' = 'json',
      'scan.startup.mode' = 'earliest-offset');
    CREATE TABLE counts (name STRING, n BIGINT, PRIMARY KEY (name) NOT ENFORCED)
      WITH ('connector' = 'upsert-kafka', 'topic' = '{sink}', 'key.format' = 'json', 'value.format' = 'json');
    INSERT INTO counts SELECT name, COUNT(*) FROM t GROUP BY name;
"""


def test_the_values_of_records_and_old_objects_are_given_back_when_no_more_come_and_the_next_ones_are_read(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], temporary: Path, tmp_path: Path
) -> None:
    source, sink, collections = make_topic("source"), make_topic("counts"), tmp_path / "collections"
    # What outlives one collection is old: so a start already leaves garbage among old objects.
    java = f"-XX:TieredStopAtLevel=1 -XX:MaxTenuringThreshold=0 -Xlog:gc:file={collections}"
    conf = {"spark.driver.extraJavaOptions": java}
    running = service(
        PIPELINE.format(source=source, sink=sink), kafka.bootstrap, own_jvm=True, SPARK__CONF=json.dumps(conf)
    )

    def asked_for() -> int:
        """Collections that the program has asked for."""
        return collections.read_text().count("Pause Full (System.gc())")

    def values() -> list[Path]:
        return [path for folder in temporary.iterdir() for path in temporary_folder(folder).glob("values-*")]

    running.start()
    for rows in (1, 2):
        feed(kafka.bootstrap, source, [(0, {"name": "ann"})])
        running.until(f"{rows} are counted", lambda rows=rows: len(read(kafka.bootstrap, sink)) == rows)  # type: ignore[misc]
        assert values(), "the last task keeps them for the next one"
        running.until("they are given back", lambda: not values())
        running.until("old objects are collected", lambda: asked_for() > 0)


def unpacked(jvm: int) -> set[Path]:
    """The native libraries that a JVM has unpacked: those that it has mapped from no folder of the system."""
    maps = Path(f"/proc/{jvm}/maps").read_text().splitlines()
    mapped = {Path(line.split(maxsplit=5)[5]) for line in maps if line.endswith(".so")}
    return {path for path in mapped if "java" in path.name or "jni" in path.name} - {
        path for path in mapped if (path.parent / "libjava.so").exists()
    }


def test_nothing_of_a_run_is_left_after_a_kill_of_its_driver_or_of_all_of_it_at_once(
    kafka: Broker, make_topic: MakeTopic, service: Callable[..., ServiceProcess], temporary: Path
) -> None:
    source, sink = make_topic("source"), make_topic("counts")
    running = service(PIPELINE.format(source=source, sink=sink), kafka.bootstrap, own_jvm=True)

    def counted(rows: int) -> None:
        feed(kafka.bootstrap, source, [(0, {"name": "ann"})])
        running.until(f"{rows} are counted", lambda: len(read(kafka.bootstrap, sink)) == rows)

    running.start()
    counted(1)
    (folder,) = temporary.iterdir()
    (jvm,) = running.processes()["jvm"]
    assert any(path.name.startswith("liblz4") for path in unpacked(jvm))
    assert all(path.is_relative_to(folder) for path in unpacked(jvm))
    for kind in ("artifacts-*", "blockmgr-*", "spark-*"):
        assert list(temporary_folder(folder).glob(kind)), kind
    running.kill()
    assert list(temporary.iterdir()) == []

    # As a container ends: nobody is left to clean up.
    running.start()
    counted(2)
    (driver,) = running.processes()["driver"]
    family = descendants(driver)
    guards = [pid for pid in family if "tailrace-guard" in command_of(pid)]
    for pid in [*guards, driver, *family]:
        signal_to(pid, signal.SIGKILL)
    running.kill()
    (dead,) = temporary.iterdir()
    running.start()
    running.until("the next run has cleaned up", lambda: not dead.exists())
    counted(3)
    running.terminate()
    assert running.wait() == 0
    assert list(temporary.iterdir()) == []
