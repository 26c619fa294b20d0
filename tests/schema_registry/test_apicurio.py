"""The client and the formats against a registry that others wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from urllib.request import Request, urlopen

import pytest

from service.archives.cache import cache_folder
from service.plan.table import Format
from service.plan.types import BIGINT, STRING, DataType
from service.schema_registry import client
from service.schema_registry.client import SchemaRegistry
from service.schema_registry.errors import RegistryConfigError, UnknownSchema
from service.schema_registry.registry_settings import registry_settings
from tests.formats.wire import encode, rows, table
from tests.schema_registry.apicurio import running

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(cache_folder().parent / "apicurio", tmp_path_factory.mktemp("apicurio") / "log") as address:
        yield address


def of_strings(*names: str) -> str:
    fields = [{"name": name, "type": "string"} for name in names]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def test_schemas_are_registered_found_and_refused(url: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client, "_PAUSE", 0.01)
    asking = SchemaRegistry(registry_settings({"url": url}))
    number = asking.id_of("a-value", of_strings("a"), "AVRO", register=True)
    again = SchemaRegistry(registry_settings({"url": url}))
    assert again.id_of("a-value", of_strings("a"), "AVRO", register=False) == number
    assert json.loads(again.schema(number).text) == json.loads(of_strings("a"))
    with pytest.raises(UnknownSchema):
        again.schema(999_999)
    with pytest.raises(RegistryConfigError, match="not registered"):
        again.id_of("b-value", of_strings("b"), "AVRO", register=False)
    body = json.dumps({"compatibility": "BACKWARD"}).encode()
    with urlopen(Request(f"{url}/config/a-value", body, {"Content-Type": "application/json"}, method="PUT")):
        pass
    with pytest.raises(RegistryConfigError, match="not compatible"):
        again.id_of("a-value", of_strings("a", "b"), "AVRO", register=True)


@pytest.mark.parametrize("kind", ["avro-confluent", "debezium-avro-confluent", "json-registry", "protobuf-confluent"])
def test_rows_go_out_and_come_back(url: str, kind: str):
    columns: dict[str, DataType] = {"k": BIGINT, "v": STRING}
    made = table(columns, key=["k"])
    form = Format(kind, {"subject": f"{kind}-value"}, {"url": url})
    sink = replace(made, connector=replace(made.connector, value_format=form))
    lines = encode(sink, (1, (1, "a")), (1, (2, "b")))["value"].to_pylist()
    assert rows(sink, *lines) == [(1, "a"), (2, "b")]
