"""What tests may ask of a broker, and the broker in a container for machines with a Docker engine."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from testcontainers.community.kafka import KafkaContainer

from service.kafka.local_broker.server_properties import ONE_NODE


class Broker(Protocol):
    """The broker that a test shares with others."""

    @property
    def bootstrap(self) -> str: ...


class MakeTopic(Protocol):
    """Makes a topic that no other test has and returns its name; `cleanup_policy="compact"` and so on configure it."""

    def __call__(self, name: str = "topic", *, partitions: int = 2, **config: str) -> str: ...


class KafkaInContainer:
    """A single broker in a container, with the settings of the local one."""

    def __init__(self) -> None:
        self._container = KafkaContainer().with_kraft()
        for name, value in ONE_NODE.items():
            self._container.with_env("KAFKA_" + name.upper().replace(".", "_"), value)

    @property
    def bootstrap(self) -> str:
        return self._container.get_bootstrap_server()

    def __enter__(self) -> Self:
        self._container.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._container.stop()
