"""The schema of the values: it knows every value, and refuses what is misspelt or of another kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import helm_python
import pytest
import yaml
from pydantic import SecretStr

from service.settings import Settings
from tests.chart.rendering import CHART, LOCAL, files, merged

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
NOT_IN_VALUES = {"global", "enabled", "replicaCount"}


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    return SCHEMA["$defs"][reference.rpartition("/")[2]] if reference else schema


def closed(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Every object that takes no other keys than its own, and these keys."""
    here = resolved(schema)
    if here.get("additionalProperties") is False:
        yield path, set(here["properties"])
    for name, below in here.get("properties", {}).items():
        yield from closed(below, (*path, name))


CLOSED = dict(closed(SCHEMA))


def at(values: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        values = values[name]
    return values


def refused(changes: Mapping[str, Any]) -> str:
    with pytest.raises(helm_python.HelmValuesError) as error:
        files(merged(LOCAL, changes))
    return str(error.value)


def test_the_schema_knows_the_values_and_no_others():
    top = CLOSED.pop(()) - NOT_IN_VALUES
    assert top == set(VALUES)
    for path, keys in CLOSED.items():
        given = at(VALUES, path)
        if path[0] not in ("probes", "resources", "imagePullSecrets"):  # whose fields are Kubernetes' own
            assert keys == set(given), path


def test_every_group_of_values_is_closed():
    """What is open holds names that others choose, or is taken over by Kubernetes as it is."""
    open_groups = [
        name for name, schema in SCHEMA["properties"].items() if VALUES.get(name) and isinstance(VALUES[name], dict)
        and resolved(schema).get("additionalProperties") is not False
    ]  # fmt: skip
    assert sorted(open_groups) == ["podSecurityContext", "securityContext", "updateStrategy"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pipelin": {"sql": "x"}}, "additional properties 'pipelin' not allowed"),
        ({"pipeline": {"sqll": "x"}}, "at '/pipeline': additional properties 'sqll' not allowed"),
        ({"kafka": {"sasl": {"user": "ann"}}}, "at '/kafka/sasl': additional properties 'user' not allowed"),
        ({"kafka": {"tls": {"ca": {"secret": "ca"}}}}, "at '/kafka/tls/ca': additional properties 'secret' not"),
        ({"spark": {"executor": {"instance": 3}}}, "at '/spark/executor': additional properties 'instance' not"),
        ({"probes": {"liveness": {"path": "/"}}}, "at '/probes/liveness': additional properties 'path' not allowed"),
        ({"config": {"TAILRACE_TOPIC__CREATE": "true"}}, "invalid propertyName 'TAILRACE_TOPIC__CREATE'"),
        ({"config": {"tailrace_topics__create": "true"}}, "invalid propertyName 'tailrace_topics__create'"),
        ({"pipeline": {"variables": {"TAILRACE_X": "1"}}}, "invalid propertyName 'TAILRACE_X'"),
        ({"mode": "cluster"}, "at '/mode': value must be one of 'local', 'kubernetes'"),
        ({"image": {"digest": "latest"}}, "at '/image/digest': 'latest' does not match pattern"),
        ({"upgrade": {"from": "yesterday"}}, "at '/upgrade/from': 'yesterday' does not match pattern"),
        ({"upgrade": {"from": "2024-05-01T00:00:00"}}, "at '/upgrade/from': '2024-05-01T00:00:00' does not match"),
        ({"upgrade": {"from": -1}}, "at '/upgrade/from': minimum: got -1, want 0"),
        ({"kafka": {"bootstrapServers": "kafka"}}, "at '/kafka/bootstrapServers': 'kafka' does not match pattern"),
        ({"spark": {"driver": {"memory": "1Gi"}}}, "at '/spark/driver/memory': '1Gi' does not match pattern"),
        ({"spark": {"conf": {"executor.memory": "1g"}}}, "invalid propertyName 'executor.memory'"),
        ({"spark": {"executor": {"instances": 0}}}, "at '/spark/executor/instances': minimum: got 0, want 1"),
        ({"persistence": {"accessModes": ["ReadOnlyMany"]}}, "at '/persistence/accessModes/0': value must be one of"),
        ({"persistence": {"size": "10 GB"}}, "at '/persistence/size': '10 GB' does not match pattern"),
        ({"terminationGracePeriodSeconds": 10}, "minimum: got 10, want 30"),
        ({"service": {"targetPort": 80}}, "at '/service/targetPort': minimum: got 80, want 1,024"),
        ({"serviceMonitor": {"interval": "often"}}, "at '/serviceMonitor/interval': 'often' does not match pattern"),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, dict) else "",
)
def test_a_mistake_is_refused_with_its_place(changes: Mapping[str, Any], message: str):
    assert message in refused(changes)


def test_a_chart_above_may_switch_this_one_on_and_hand_down_its_globals():
    assert files(merged(LOCAL, {"enabled": True, "global": {"imageRegistry": "x"}}))


def test_no_password_can_be_a_plain_value():
    """The chart refuses in `config` what it makes itself, passwords among it."""

    def secrets(model: Any, prefix: str) -> Iterator[str]:
        for name, field in model.model_fields.items():
            if field.annotation is SecretStr:
                yield prefix + name.upper()
            elif hasattr(field.annotation, "model_fields"):
                yield from secrets(field.annotation, f"{prefix}{name.upper()}__")

    found = list(secrets(Settings, "TAILRACE_"))
    assert found
    own = (CHART / "templates" / "_checks.tpl").read_text()
    assert [name for name in found if f"\n{name}: " not in own] == []
