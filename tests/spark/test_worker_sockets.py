"""The paths of the sockets between the JVM and its Python workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.spark.driver.jvm import temporary_folder
from service.spark.driver.worker_sockets import LONGEST, worker_sockets
from service.spark.internals.workers import SOCKET_NAME, UNIX_SOCKETS


@pytest.mark.parametrize(("length", "enabled"), [(20, "true"), (LONGEST - 43, "true"), (LONGEST - 42, "false")])
def test_workers_have_unix_sockets_where_their_path_is_not_too_long(length: int, enabled: str):
    folder = Path("/" + "f" * (length - 1))
    assert worker_sockets(folder) == {UNIX_SOCKETS: enabled}
    assert (len(f"{folder}/{SOCKET_NAME}") <= LONGEST) is (enabled == "true")


def test_the_length_of_a_path_is_that_of_its_bytes():
    assert worker_sockets(Path("/" + "ä" * 40)) == {UNIX_SOCKETS: "false"}


def test_the_usual_folder_of_a_run_is_short_enough():
    assert worker_sockets(temporary_folder(Path("/tmp/tailrace-0a1b2c3d"))) == {UNIX_SOCKETS: "true"}
