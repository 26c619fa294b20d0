"""The process from which Spark's Python workers are forked, with their modules already imported.

PySpark's own daemon imports nothing, so every worker would load PySpark, DuckDB and Arrow by itself: seconds of a core
for each worker before the first batch. Here that is done once, and workers share the memory.

No imported module may start a thread, which a fork would lose. Numpy's BLAS would, so it is set not to.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys

from service.spark.internals.workers import WORKER, daemon_manager

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

PRELOADED = (
    "numpy",
    "numpy.ma",  # pyarrow imports it with the first array, and dateutil with the first Python value
    "dateutil.relativedelta",
    "pyarrow",
    "pyarrow.compute",
    "duckdb",
    "pyspark.sql.pandas.serializers",
    "service.formats.registry",
    "service.spark.query.source",
    "service.spark.query.stateful",
    "service.spark.query.warm_up",
)


def main() -> None:
    """Import what the workers need, then serve as PySpark's daemon does."""
    gc.disable()  # an import leaves no garbage: to look for it takes a tenth of the time
    worker = sys.argv[1] if len(sys.argv) > 1 else WORKER
    importlib.import_module(worker)
    if worker == WORKER:
        for module in PRELOADED:
            importlib.import_module(module)
    manager = daemon_manager()
    # A worker collects garbage after each task: what was imported is none, and need not be searched.
    gc.collect()
    gc.freeze()
    gc.enable()
    manager()


if __name__ == "__main__":
    main()
