"""The container's entrypoint, with a `java` and a `tailrace` that only print what they are given."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ENTRYPOINT = Path(__file__).parent.parent.parent / "image" / "entrypoint"

# What Spark puts into the environment of an executor's container.
FROM_SPARK = {
    "SPARK_JAVA_OPT_0": "-Dfirst=a b",
    "SPARK_JAVA_OPT_1": "-Dsecond=1",
    "SPARK_CLASSPATH": "/ours.jar",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "exec-3",
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for name in ("java", "tailrace"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" {name} "$@"\n')
        program.chmod(0o755)
    return {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "JAVA_HOME": str(tmp_path), "SPARK_HOME": "/spark"}


def run(environment: dict[str, str], *arguments: str) -> list[str]:
    return subprocess.run(
        [ENTRYPOINT, *arguments], env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_arguments_go_to_tailrace(environment: dict[str, str]):
    assert run(environment, "run", "a pipeline.sql") == ["tailrace", "run", "a pipeline.sql"]


def test_an_executor_gets_the_options_of_spark_whole_and_in_order(environment: dict[str, str]):
    java, first, second, *_ = run(environment | FROM_SPARK, "executor")
    assert [java, first, second] == ["java", "-Dfirst=a b", "-Dsecond=1"]


def test_an_executor_knows_that_it_may_read_the_secret_from_a_file(environment: dict[str, str]):
    """Spark takes `spark.authenticate.secret.file` on Kubernetes only, and the driver is asked with the secret."""
    assert "-Dspark.master=k8s://" in run(environment | FROM_SPARK, "executor")


def test_an_executor_knows_its_driver_and_its_name(environment: dict[str, str]):
    command = run(environment | FROM_SPARK, "executor")
    start = command.index("org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend")
    given = dict(zip(command[start + 1 :: 2], command[start + 2 :: 2], strict=True))
    assert command[start - 2 : start] == ["-cp", "/ours.jar:/spark/jars/*:/opt/spark/conf"]
    assert given == {
        "--driver-url": "spark://CoarseGrainedScheduler@driver:7078",
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.7",
        "--resourceProfileId": "0",
        "--podName": "exec-3",
    }


def test_an_executor_that_misses_a_variable_of_spark_does_not_start(environment: dict[str, str]):
    incomplete = {name: value for name, value in FROM_SPARK.items() if name != "SPARK_DRIVER_URL"}
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run(environment | incomplete, "executor")
    assert "SPARK_DRIVER_URL" in caught.value.stderr
