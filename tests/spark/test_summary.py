"""The summary of a failure for a person: what was thrown and why, without the frames of Spark."""

from __future__ import annotations

import pytest

from service.spark.supervision.jobs import summary

FRAMES = "\tat org.apache.spark.Some.thing(Some.scala:1)\n\tat java.base/java.lang.Thread.run(Thread.java:840)\n"
JVM = "An error occurred while calling o218.start.\n: "


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"{JVM}java.io.IOException: no such bucket\n{FRAMES}", "java.io.IOException: no such bucket"),
        (
            f"{JVM}java.lang.RuntimeException: cannot start\n{FRAMES}Caused by: java.io.IOException: between\n{FRAMES}"
            f"\t... 12 more\nCaused by: java.net.ConnectException: refused\n{FRAMES}",
            "java.lang.RuntimeException: cannot start\n  caused by: java.net.ConnectException: refused",
        ),
        ("An error occurred while calling o1.start.", "An error occurred while calling o1.start."),
        ("[SOME_ERROR] of Spark\nSQLSTATE: 42000", "[SOME_ERROR] of Spark"),
        (
            "Job aborted due to stage failure: ResultStage 3 has failed the maximum allowable number of times: 4. Most "
            "recent failure reason: org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location",
            "executors ended repeatedly in the middle of the batch\n  hint:   see their logs",
        ),
        ("", ""),
    ],
    ids=["thrown", "caused", "unknown", "one line", "executors", "nothing"],
)
def test_a_failure_is_summarized_without_its_frames(message: str, expected: str):
    assert summary(RuntimeError(message)) == expected
