"""What is done about a failure follows from the classes of its errors: from the chain of the JVM's exceptions, or from
the note that a Python error takes along."""

from __future__ import annotations

import traceback

import pytest
from py4j.protocol import Py4JJavaError

from service.host.clock import ClockJumped
from service.kafka.errors import KafkaConfigError, KafkaFailure, KafkaUnreachable
from service.spark.internals.failures import SparkFailure, failure_of, note, noted, without_notes
from service.spark.supervision.failure_classes import is_misconfigured, is_patient

KAFKA = "org.apache.kafka.common.errors"
LOST_TASK = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3 in stage "
    "1.0 (TID 3) (10.0.0.7 executor 1): {thrown}: {words}\n\tat {frame}.fetch(A.scala:1)\n\n"
)


class JavaClass:
    """A class of the JVM, with the classes above it."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def getName(self) -> str:
        return self._names[0]

    def getSuperclass(self) -> JavaClass | None:
        return JavaClass(*self._names[1:]) if len(self._names) > 1 else None


class JavaException:
    """An exception of the JVM as py4j shows it."""

    def __init__(self, *names: str, cause: JavaException | None = None) -> None:
        self._names, self._cause = names, cause

    def getClass(self) -> JavaClass:
        return JavaClass(*self._names)

    def getCause(self) -> JavaException | None:
        return self._cause


class ThrownByJava(Py4JJavaError):  # type: ignore[misc]
    """What py4j raises, without a JVM to ask for its text."""

    def __init__(self, java: JavaException, text: str = "An error occurred while calling o1.start.") -> None:
        self.java_exception, self._text = java, text

    def __str__(self) -> str:
        return self._text


def spark(cause: JavaException | None, text: str = "") -> SparkFailure:
    return failure_of(ThrownByJava(JavaException("org.apache.spark.SparkException", cause=cause), text))


def task(error: Exception) -> SparkFailure:
    """A failure in a task, of which the driver has the text of Python's traceback."""
    try:
        with noted():
            raise error
    except Exception:
        text = traceback.format_exc()
    python = JavaException("org.apache.spark.api.python.PythonException", "java.lang.RuntimeException")
    return spark(python, f"Job aborted due to stage failure: PythonException: {text}\n\tat org.apache.spark.Some(A:1)")


@pytest.mark.parametrize(
    ("failure", "patient"),
    [
        (spark(JavaException(f"{KAFKA}.TimeoutException", f"{KAFKA}.RetriableException")), True),
        (spark(JavaException("java.lang.Exception", cause=JavaException(f"{KAFKA}.DisconnectException"))), True),
        (spark(JavaException(f"{KAFKA}.OfASubclass", f"{KAFKA}.TimeoutException")), True),
        (spark(JavaException("java.util.concurrent.TimeoutException")), False),
        (spark(JavaException("com.example.TimeoutException")), False),
        (spark(None, LOST_TASK.format(thrown=f"{KAFKA}.TimeoutException", words="x", frame="a.b.C")), True),
        (spark(None, LOST_TASK.format(thrown="java.util.concurrent.TimeoutException", words="x", frame="a.C")), False),
        (
            spark(None, LOST_TASK.format(thrown="java.lang.Error", words=f"{KAFKA}.TimeoutException", frame="a.C")),
            False,
        ),
        (task(KafkaUnreachable("no answer")), True),
        (task(ValueError("service.kafka.errors.KafkaUnreachable: no answer")), False),
        (task(ValueError('x\n  tailrace-failure ["service.kafka.errors.KafkaUnreachable"]')), False),
        (failure_of(KafkaUnreachable("no answer")), True),
        (failure_of(RuntimeError("the record says KafkaUnreachable")), False),
    ],
)
def test_only_a_kafka_that_does_not_answer_is_waited_for(failure: SparkFailure, patient: bool):
    assert is_patient(failure) is patient


@pytest.mark.parametrize(
    ("failure", "wrong"),
    [
        (spark(JavaException(f"{KAFKA}.OfASubclass", f"{KAFKA}.AuthenticationException")), True),
        (spark(None, LOST_TASK.format(thrown=f"{KAFKA}.TopicAuthorizationException", words="x", frame="a.C")), True),
        (task(KafkaConfigError("no right")), True),
        (task(ValueError("KafkaConfigError")), False),
        (spark(JavaException("java.lang.Exception")), False),
    ],
)
def test_what_only_other_settings_help_against_is_known(failure: SparkFailure, wrong: bool):
    assert is_misconfigured(failure) is wrong


def test_the_note_names_the_class_and_those_above_it_also_behind_another_error():
    assert task(KafkaConfigError("x")).raised(KafkaFailure)
    try:
        try:
            with noted():
                raise ClockJumped("by a year")
        except ClockJumped as error:
            raise RuntimeError(f"data source throws {error}") from error
    except RuntimeError:
        text = traceback.format_exc()
    assert spark(None, text).raised(ClockJumped)


def test_an_error_is_noted_once_and_nobody_is_shown_it():
    error = KafkaUnreachable("away")
    note(error)
    note(error)
    text = "".join(traceback.format_exception(error))
    assert text.count("tailrace-failure") == 1
    assert "tailrace-failure" not in without_notes(text)
    assert "away" in without_notes(text)


def test_of_a_jvm_that_is_gone_there_are_no_classes():
    class Gone(JavaException):
        def getClass(self) -> JavaClass:
            raise ConnectionResetError

    assert failure_of(ThrownByJava(Gone("a.B"))).java == ()
