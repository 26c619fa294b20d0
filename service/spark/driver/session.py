"""The Spark session."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from service.spark.driver.allocation import of_workers
from service.spark.driver.cluster_mode import is_local
from service.spark.driver.jvm import Jvm, JvmFailed
from service.spark.internals.arrow_functions import allow_without_pandas
from service.spark.internals.callbacks import open_callbacks
from service.spark.query.heartbeat import TickSource
from service.spark.query.warm_up import warm_up

_ROWS = 20_000
"""The number of small rows that Spark passes to Python at a time."""

_BYTES = 16 << 10
"""The bytes at which Spark passes on what it has: a block of records at once, so that it is computed while the next one
is read, and an envelope with its payload alone, since the JVM holds what it passes on three times."""


def build(jvm: Jvm, settings: Mapping[str, str], *, name: str, partitions: int) -> SparkSession:
    """Return a session in `jvm` that can call this process, with our data source registered.

    `settings` are those that the JVM was started with. Raises `JvmFailed` if Spark does not start with them.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs what it raises, with every frame
    builder = SparkSession.builder.appName(name)
    of_the_job = {
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ROWS),
        "spark.sql.execution.arrow.maxBytesPerBatch": str(_BYTES),
    }
    for key, value in {**of_the_job, **settings}.items():
        builder = builder.config(key, value)
    jvm.connect()
    try:
        session = builder.getOrCreate()
    except Py4JJavaError as error:
        # As text: to read the exception later, Spark would ask a JVM that has ended for it.
        raise JvmFailed(f"Spark did not start: {error.java_exception.toString()}") from None
    session.sparkContext.setLogLevel("WARN")
    allow_without_pandas()
    # They come with each function that is sent to a Python worker; `spark.executorEnv` would give them to the
    # executor's JVM, too. What the user has set there is among them already.
    session.sparkContext.environment = of_workers() | session.sparkContext.environment
    if is_local(settings["spark.master"]):
        threading.Thread(target=warm_up, args=(session, partitions), name="warm-up", daemon=True).start()
    open_callbacks(session)
    session.dataSource.register(TickSource)
    return session
