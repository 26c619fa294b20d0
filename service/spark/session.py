"""The Spark session: every setting that this service depends on, and why."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from service.settings import Spark
from service.spark import cluster_mode
from service.spark.sink import TailraceSink
from service.spark.ticks import TickSource

_STREAMING = "spark.sql.streaming."

FIXED: Mapping[str, str] = {
    # A batch's tasks must be the same on a replay; adaptive execution lets them follow the data.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Spark's own part of the work is a scan and a projection: compiling each batch's plan to Java costs more than it
    # gives (half of the JVM's time to the first batch, a fifth of that of a small one).
    "spark.sql.codegen.wholeStage": "false",
    _STREAMING + "stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    _STREAMING + "stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Spark's default forks chmod and readlink about ten times a batch.
    _STREAMING + "checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    _STREAMING + "metricsEnabled": "false",
    _STREAMING + "noDataMicroBatches.enabled": "false",
    _STREAMING + "pollingDelay": "5ms",
    _STREAMING + "numRecentProgressUpdates": "50",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "service.spark.daemon",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.cleaner.periodicGC.interval": "10min",
}


def build(*, name: str, spark: Spark, partitions: int, jars: Sequence[Path], block_rows: int) -> SparkSession:
    """A session with our two data sources registered. `spark.conf` overrides everything but what answers depend on."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs what it raises, with every frame
    here = Path(__file__).resolve()
    ours = [str(here.with_name("startup")), str(here.parents[2])]
    os.environ["PYTHONPATH"] = os.pathsep.join([*ours, *filter(None, [os.environ.get("PYTHONPATH")])])
    builder = SparkSession.builder.appName(name).master(spark.master)
    logging_options = f"-Dlog4j2.configurationFile={here.with_name('log4j2.properties').as_uri()}"
    java_options = " ".join(filter(None, (logging_options, spark.conf.get("spark.driver.extraJavaOptions"))))
    settings = {
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(block_rows),
        **cluster_mode.suggested(spark),
        **spark.conf,
        **FIXED,
        "spark.driver.extraJavaOptions": java_options,
        **cluster_mode.required(spark, spark.conf, jars=jars, python_path=ours, java_options=logging_options),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    session.dataSource.register(TailraceSink)
    session.dataSource.register(TickSource)
    return session
