"""A task that can no longer write its state fails, and its job says why: it does not wait for ever."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.brokers import Broker
from tests.spark.service_process import ServiceProcess

PIPELINE = """
CREATE TABLE numbers (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '20000',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '100000000');
CREATE TABLE counted (id BIGINT, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO counted SELECT id, COUNT(*) FROM numbers GROUP BY id;
"""
ON_A_SMALL_DISK = 'mkdir -p "$0" && mount -t tmpfs -o size=400k small "$0" && exec "$@"'


def test_a_full_disk_ends_the_job_with_its_reason(
    kafka: Broker, service: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    """The disk of the checkpoint is 400 KiB of memory, in a mount namespace of the service's own."""
    own = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    if subprocess.run([*own, "true"], capture_output=True).returncode:
        pytest.skip("this machine gives nobody a mount namespace")
    counting = service(PIPELINE, kafka.bootstrap, RETRY__ATTEMPTS="1", SPARK__PARTITIONS="2")
    counting.within = [*own, "sh", "-c", ON_A_SMALL_DISK, str(tmp_path / "checkpoint")]
    counting.start()
    assert counting.wait() == 1
    gave_up = next(event for event in counting.events() if event["event"] == "gave up")
    assert "No space left on device" in str(gave_up["error"])
