"""A JVM in which Spark runs for one service after another.

A service starts a JVM of its own: six seconds of a processor until Spark runs, and three more until its code is
compiled as far as the first batches need it. Most tests ask what a service answers, not how its JVM starts and ends;
their services use this one, if nothing speaks against it (`service.py`). It ends as a service's own JVM would where a
test kills the service.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from service.archives import ensure, load
from service.settings import Spark
from service.spark.driver.class_path import spark_home
from service.spark.driver.configuration import configured
from service.spark.driver.java_classes import own_classes
from service.spark.driver.jvm import Jvm, temporary_folder
from service.spark.driver.worker_sockets import worker_sockets
from service.spark.internals.workers import GATEWAY_PORT, GATEWAY_SECRET
from tests.spark.shared_jvm.forks import ForkServer
from tests.spark.shared_jvm.terms import ADDRESS, BEFORE_TESTS, LOCK, LOG, environment, started_with
from tests.spark.shared_jvm.worker_forks import WorkerForks


class SharedJvm:
    """A JVM that services use in turn, started with the settings `spark`."""

    def __init__(self, spark: Spark) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tj-"))
        jars = list(ensure(load("spark")))
        jars.append(own_classes(jars, spark_home() / "jars"))
        settings = {**worker_sockets(temporary_folder(self.folder)), **configured(spark, jars, "")}
        self._workers = WorkerForks(self.folder)
        with environment(BEFORE_TESTS):
            terms = started_with(settings, jars)
            self._jvm = Jvm(settings, jars, self.folder, self._printed)
            self._jvm.connect()
            port, secret = os.environ[GATEWAY_PORT], os.environ[GATEWAY_SECRET]
        python = str(self._workers.python)
        address = {"port": port, "secret": secret, "pid": self._jvm.process.pid, "python": python, **terms}
        (self.folder / ADDRESS).write_text(json.dumps(address))
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(port), auth_token=secret))

    def runs(self) -> bool:
        """Return whether the JVM has not ended."""
        return self._jvm.process.poll() is None

    @property
    def pid(self) -> int:
        """Its process id."""
        return int(self._jvm.process.pid)

    def java(self, name: str) -> Any:
        """Return py4j's view of a class by its full name."""
        return getattr(self._gateway.jvm, name)

    def used_by(self, pid: int) -> bool:
        """Return whether the service with this process id was the last to use the JVM."""
        user = self.folder / LOCK
        return user.exists() and user.read_text() == str(pid)

    def workers(self) -> list[int]:
        """Return the processes from which workers are forked, of services that use the JVM now."""
        return self._workers.forks()

    def clear(self) -> None:
        """Stop the Spark that a killed service has left running."""
        with suppress(Py4JError):
            found = self._gateway.jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession()
            if found.isDefined():
                found.get().sparkContext().stop()
        self._workers.wait()

    def forget(self) -> None:
        """Have the JVM collect what earlier services have left. It tells Python which objects it no longer needs, by
        numbers that each process counts from 0: a number that comes late is that of an object in use."""
        self._gateway.jvm.java.lang.System.gc()
        self._gateway.jvm.java.lang.System.runFinalization()

    def kill(self) -> None:
        """kill -9 of the JVM."""
        self._jvm.process.kill()
        self.close()

    def close(self) -> None:
        """End the JVM; safe to call twice."""
        with suppress(Py4JError):
            self._gateway.close()
        self._jvm.close()
        self._workers.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _printed(self, line: str) -> None:
        with (self.folder / LOG).open("a") as log:
            log.write(line + "\n")


class SharedJvms:
    """The shared JVM of a test process, started when a service first asks for it, and again when it has ended; and the
    process from which services are forked."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        """`conf` are settings of Spark."""
        self._spark = Spark(master="local[2,16]", driver_memory="768m", conf=dict(conf))
        self._jvm: SharedJvm | None = None
        self._forks: ForkServer | None = None

    @property
    def forks(self) -> ForkServer:
        """The process from which services are forked."""
        if self._forks is None:
            self._forks = ForkServer()
        return self._forks

    def running(self) -> SharedJvm:
        """Return the JVM."""
        if self._jvm is not None and not self._jvm.runs():
            self._jvm.close()
            self._jvm = None
        if self._jvm is None:
            self._jvm = SharedJvm(self._spark)
        else:
            self._jvm.forget()
        return self._jvm

    def used_by(self, pid: int) -> SharedJvm | None:
        """Return the JVM if the service with this process id was the last to use it."""
        return self._jvm if self._jvm is not None and self._jvm.used_by(pid) else None

    def close(self) -> None:
        """End the JVM."""
        if self._jvm is not None:
            self._jvm.close()
        if self._forks is not None:
            self._forks.close()
