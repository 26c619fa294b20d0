"""Users of a local broker: how they log in by SCRAM, and what they may do."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
"""What Kafka's Java clients and brokers call it."""

LISTENER = "listener.name.client."
"""What properties of the listener that clients use begin with."""

AUTHORIZED: Mapping[str, str] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Properties of a broker that asks for rights, but of nobody on its internal listener."""

Rights = Sequence[tuple[ResourceType, str, Sequence[AclOperation]]]
"""What may be done on all resources of a kind whose names begin so."""


def asks_for_password(mechanism: str) -> dict[str, str]:
    """Properties of a broker whose clients log in by `mechanism` (SCRAM-SHA-256 or SCRAM-SHA-512)."""
    return {
        f"{LISTENER}sasl.enabled.mechanisms": mechanism,
        f"{LISTENER}{mechanism.lower()}.sasl.jaas.config": f"{MODULE} required;",
    }


def users(mechanism: str, passwords: Mapping[str, str]) -> list[str]:
    """The arguments of Kafka's storage tool with which the broker knows these users from its start."""
    added = [f"{mechanism}=[name={name},password={password}]" for name, password in passwords.items()]
    return [word for each in added for word in ("--add-scram", each)]


def grant(admin: AdminClient, user: str, rights: Rights) -> None:
    """Give rights to a user; return when the broker knows them."""
    whole = ResourceType.BROKER  # the cluster has one name
    bindings = [
        AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL if kind == whole else ResourcePatternType.PREFIXED,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for kind, name, operations in rights
        for operation in operations
    ]
    for granted in admin.create_acls(bindings, request_timeout=120).values():
        granted.result(120)
    # The controller has them; the broker receives them a moment later, and answers for itself what it knows.
    theirs = AclBindingFilter(
        ResourceType.ANY,
        None,  # type: ignore[arg-type]  # any name, which the stubs do not know
        ResourcePatternType.ANY,
        f"User:{user}",
        None,  # type: ignore[arg-type]  # any host
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    deadline = time.monotonic() + 120
    while not set(bindings) <= set(admin.describe_acls(theirs, request_timeout=120).result(120)):
        assert time.monotonic() < deadline, "the broker has not received the rights"
        time.sleep(0.1)
