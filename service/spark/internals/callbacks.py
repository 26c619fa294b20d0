"""The way from the JVM back into this process, for functions that Spark calls in the driver.

PySpark opens a port for it that anybody on the machine may call: py4j does not send its secret along when it tells the
JVM the port. So both sides are given the secret here, before PySpark would open the port itself.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from service.spark.internals.jvm import java_class

_CLIENT = "cbClient"
"""The member of py4j's `Gateway` that holds its client of this process."""

_SOCKETS = "tailrace.callbacks.PromptSockets"
"""The class that makes the connections of that client."""


def open_callbacks(session: SparkSession) -> None:
    """Let the JVM of the session call this process, and nobody else; a second call does nothing."""
    gateway: Any = session.sparkContext._gateway
    if gateway.__dict__.get("_callback_server") is not None:
        return
    secret = gateway.gateway_parameters.auth_token
    gateway.callback_server_parameters.auth_token = secret
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    inside = server.getGateway()
    without = inside.getCallbackClient()
    client = java_class(session, "py4j.PythonClient")(
        inside,
        None,
        gateway._python_proxy_port,
        without.getAddress(),
        30,
        java_class(session, "java.util.concurrent.TimeUnit").SECONDS,
        java_class(session, _SOCKETS)(),
        server,
        True,
        0,
        secret,
    )
    member = java_class(session, "java.lang.Class").forName("py4j.Gateway").getDeclaredField(_CLIENT)
    member.setAccessible(True)
    member.set(inside, client)
