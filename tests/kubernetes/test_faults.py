"""What is wrong outside of the pods is said where an operator looks: readiness, log, `kubectl describe`."""

from __future__ import annotations

from service.kafka.local_broker.broker import EmbeddedKafka
from tests.kubernetes.cluster import network
from tests.kubernetes.orders import Orders
from tests.kubernetes.release import DRIVER, MakeRelease, Release
from tests.kubernetes.waiting import until
from tests.logins import asks_for_password, users

MECHANISM = "SCRAM-SHA-512"


def test_a_missing_topic_is_named(orders: Orders, release: MakeRelease):
    running = release(
        {
            "pipeline": {"sql": orders.pipeline.replace("'topic' = 'orders", "'topic' = 'no-orders")},
            "config": {"TAILRACE_TOPICS__CREATE": "false"},
        }
    )
    running.install()
    until("the pod says what is missing", lambda: "no-orders" in described(running), explain=running.report)
    assert not running.ready()
    assert "no-orders" in running.log()


def test_a_broker_that_cannot_be_reached_is_waited_for_and_named(orders: Orders, release: MakeRelease):
    nobody = f"{network.MACHINE}:19999"
    running = release({"pipeline": {"sql": orders.pipeline}, "kafka": {"bootstrapServers": nobody}})
    running.install()
    until("readiness names the broker", lambda: nobody in running.http("/readyz"), explain=running.report)
    assert not running.ready()
    assert nobody in running.log()
    assert running.restarts() == 0


def test_a_wrong_password_is_reported_and_not_shown(orders: Orders, release: MakeRelease, own_kafka):
    broker: EmbeddedKafka = own_kafka(
        host=network.MACHINE,
        security="SASL_PLAINTEXT",
        properties=asks_for_password(MECHANISM),
        format_arguments=users(MECHANISM, {"ann": "right"}),
    )
    running = release(
        {
            "pipeline": {"sql": orders.pipeline},
            "kafka": {
                "bootstrapServers": broker.bootstrap,
                "sasl": {"mechanism": MECHANISM, "username": "ann", "existingSecret": "kafka"},
            },
        }
    )
    running.kubectl("create", "secret", "generic", "kafka", "--from-literal=password=gu3ss3d")
    running.install()
    until("the pod says that it is refused", lambda: "password" in described(running), explain=running.report)
    assert not running.ready()
    assert "gu3ss3d" not in described(running) + running.log()


def described(running: Release) -> str:
    """What `kubectl describe` says of the driver."""
    return running.kubectl("describe", "pod", DRIVER) if running.driver() else ""
