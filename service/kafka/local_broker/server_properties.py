"""The settings of a local broker: one node, little memory, no replication."""

from __future__ import annotations

from pathlib import Path

LOG_SETTINGS = """\
status = error
appender.out.type = Console
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1} %m%n
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = OUT
"""


ONE_NODE = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    # After a kill -9 the next broker is accepted when the session of the previous one has expired.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    # Internal topics, which a cluster keeps three times and in fifty partitions.
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # A small machine: few threads, and not the 128 MB that the cleaner takes by default.
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "16777216",
}


def server_properties(data: Path, clients: str, internal: int, controller: int, security: str) -> dict[str, str]:
    """Return the server properties of a broker that keeps its log in `data` and serves clients with `security` at the
    address `clients` (HOST:PORT), itself at the ports `internal` and `controller`."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"CLIENT://{clients},INTERNAL://127.0.0.1:{internal},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"CLIENT://{clients},INTERNAL://127.0.0.1:{internal}",
        "listener.security.protocol.map": f"CLIENT:{security},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(data),
        **ONE_NODE,
    }
