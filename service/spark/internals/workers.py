"""The modules with which Spark starts Python processes, by the names under which it starts them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

DAEMON = "pyspark.daemon"
"""The module that is started as `python -m pyspark.daemon WORKER` and forks the workers."""

WORKER = "pyspark.worker"
"""The module of the workers that run tasks; daemons of Spark's other helpers get other modules."""

HELPERS = (
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
)
"""The modules of the processes that plan a query's Python source."""

UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"
"""The setting that connects the JVM and its Python workers by Unix sockets, in the folder for temporary files of the
JVM."""

SOCKET_NAME = ".00000000-0000-0000-0000-000000000000.sock"
"""The form of the name of such a socket."""

GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
"""The class of Spark that starts a JVM for a Python driver."""

CONNECTION_FILE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The environment variable with the path of the file in which the gateway leaves its port and its secret."""


GATEWAY_PORT, GATEWAY_SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
"""The environment variables from which PySpark takes port and secret of a running gateway."""


def gateway_address(content: bytes) -> dict[str, str]:
    """Return port and secret of the gateway as the environment of PySpark, from the file that the gateway has written:
    two integers of four bytes, the port and the length of the secret, then the secret."""
    port, length = struct.unpack_from(">ii", content)
    return {GATEWAY_PORT: str(port), GATEWAY_SECRET: content[8 : 8 + length].decode()}


def daemon_manager() -> Callable[[], Any]:
    """Return the main function of PySpark's daemon. The import happens here, since it makes the process a daemon."""
    from pyspark.daemon import manager

    return manager
