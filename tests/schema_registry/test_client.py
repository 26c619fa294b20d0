"""The client of schema registries: what it asks, what it keeps, and what it says of a registry that does not answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from service.schema_registry import client
from service.schema_registry.client import SchemaRegistry
from service.schema_registry.errors import RegistryConfigError, RegistryUnreachable, UnknownSchema
from service.schema_registry.registry_settings import RegistrySettings, registry_settings
from tests.schema_registry.server import SmallRegistry, served

LONG = '"long"'


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallRegistry]:
    monkeypatch.setattr(client, "_PAUSE", 0.001)
    with served() as registry:
        yield registry


def client_of(small: SmallRegistry, **more: str) -> SchemaRegistry:
    return SchemaRegistry(registry_settings({"url": small.url, **more}))


def test_a_schema_is_asked_for_once(small: SmallRegistry):
    number = small.add(LONG)
    asking = client_of(small)
    assert [asking.schema(number).text for _ in range(3)] == [LONG] * 3
    assert small.calls == [f"GET /schemas/ids/{number}"]


def test_a_schema_that_is_not_there_is_asked_for_some_times_and_not_again_for_a_while(small: SmallRegistry):
    asking = client_of(small)
    for _ in range(2):
        with pytest.raises(UnknownSchema, match="has no schema 9"):
            asking.schema(9)
    assert len(small.calls) == 4


def test_a_schema_that_a_follower_hears_of_late_is_found(small: SmallRegistry):
    number = small.add(LONG)
    small.faults.append((404, {"error_code": 40403, "message": "Schema not found"}))
    assert client_of(small).schema(number).text == LONG


def test_a_schema_is_registered_once_under_its_subject(small: SmallRegistry):
    asking = client_of(small)
    first = asking.id_of("a/b-value", LONG, "AVRO", register=True)
    assert asking.id_of("a/b-value", LONG, "AVRO", register=True) == first
    assert small.subjects == {"a/b-value": [first]}
    assert small.calls == ["POST /subjects/a%2Fb-value/versions"]


def test_a_schema_that_must_be_there_is_looked_up(small: SmallRegistry):
    number = small.add(LONG, "t-value")
    assert client_of(small).id_of("t-value", LONG, "AVRO", register=False) == number
    with pytest.raises(RegistryConfigError, match=r"(?s)not registered under subject \"u-value\".*auto.register"):
        client_of(small).id_of("u-value", LONG, "AVRO", register=False)


def test_a_subject_that_refuses_a_schema_says_why(small: SmallRegistry):
    small.incompatible.add("t-value")
    with pytest.raises(RegistryConfigError, match=r"(?s)not compatible with subject \"t-value\".*lacks the field id"):
        client_of(small).id_of("t-value", LONG, "AVRO", register=True)


@pytest.mark.parametrize("options", [{"basic-auth.user-info": "ann:hush"}, {"bearer-auth.token": "ann:hush"}])
def test_a_client_logs_in(small: SmallRegistry, options: dict[str, str]):
    small.login = "ann:hush"
    number = small.add(LONG)
    assert client_of(small, **options).schema(number).text == LONG
    with pytest.raises(RegistryConfigError, match=r"(?s)refuses: 401 Unauthorized.*basic-auth.user-info"):
        client_of(small).schema(number)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_in_trouble_is_asked_again(small: SmallRegistry, status: int):
    number = small.add(LONG)
    small.faults += [(status, {"message": "not now"})] * 3
    assert client_of(small).schema(number).text == LONG
    small.faults += [(status, {"message": "not now"})] * 4
    with pytest.raises(RegistryUnreachable, match=f"cannot be reached: it answers {status} not now"):
        client_of(small).schema(number)


def test_a_registry_that_is_away_is_unreachable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client, "_PAUSE", 0.001)
    with served() as small:
        url = small.url
    with pytest.raises(RegistryUnreachable, match=r"cannot be reached: .*refused"):
        SchemaRegistry(RegistrySettings(urls=(url,))).schema(1)


def test_the_next_url_is_asked_where_one_does_not_answer(small: SmallRegistry):
    with served() as gone:
        away = gone.url
    number = small.add(LONG)
    assert SchemaRegistry(registry_settings({"url": f"{away}, {small.url}/"})).schema(number).text == LONG


def test_secrets_are_in_no_text():
    settings = registry_settings({"url": "http://r", "basic-auth.user-info": "a:hush", "bearer-auth.token": "hush"})
    assert "hush" not in repr(settings)
