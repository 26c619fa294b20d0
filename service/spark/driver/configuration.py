"""Spark's configuration: every setting that this service depends on, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from service.settings import Spark
from service.spark.driver import cluster_mode, object_store
from service.spark.driver.jvm_options import tuned, words_of

_STREAMING = "spark.sql.streaming."

FIXED: Mapping[str, str] = {
    # A batch's tasks must be the same on a replay; adaptive execution lets them follow the data.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Spark's own part of the work is a scan and a projection: compiling each batch's plan to Java costs more than it
    # gives (half of the JVM's time to the first batch, a fifth of that of a small one).
    "spark.sql.codegen.wholeStage": "false",
    _STREAMING + "metricsEnabled": "false",
    _STREAMING + "noDataMicroBatches.enabled": "false",
    # Between two searches that have found no rows. Each waits for some by itself (`query.SEARCH_MS`); an orderly stop
    # is planned in the pauses.
    _STREAMING + "pollingDelay": "25ms",
    _STREAMING + "numRecentProgressUpdates": "50",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "service.spark.driver.worker_daemon",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.cleaner.periodicGC.interval": "10min",
}

TEMPORARY: Mapping[str, str] = {"spark.hadoop.hadoop.tmp.dir": "${java.io.tmpdir}/hadoop"}
"""The settings for where clients of object stores buffer what they send: each JVM in its own temporary folder."""

PYTHON_PATH: Sequence[str] = (str(Path(__file__).with_name("startup")), str(Path(__file__).resolve().parents[3]))
"""The settings with which Python workers find their modules."""


def configured(spark: Spark, jars: Sequence[Path], checkpoint: str, clients: Sequence[Path] = ()) -> dict[str, str]:
    """Return the settings of the session, except those of one job. `spark.conf` overrides every setting that no answer
    depends on. `jars` and `clients` are our archives and those of the checkpoint's object store."""
    logging = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
    java_options = " ".join(filter(None, (logging, spark.conf.get("spark.driver.extraJavaOptions"))))
    of_executors = " ".join((logging, *tuned(words_of(spark.conf.get("spark.executor.extraJavaOptions", "")))))
    return {
        "spark.master": spark.master,
        **cluster_mode.suggested(spark),
        **object_store.suggested(checkpoint),
        **TEMPORARY,
        **spark.conf,
        **FIXED,
        **object_store.required(checkpoint),
        "spark.driver.extraJavaOptions": java_options,
        **cluster_mode.required(
            spark, spark.conf, jars=jars, clients=clients, python_path=PYTHON_PATH, java_options=of_executors
        ),
    }
