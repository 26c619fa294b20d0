"""The default that the page of options shows is what holds where a file says nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from service.formats.datagen import rate
from service.formats.json.options import json_options
from service.plan.table import Connector, Format
from service.sql.errors import Mistakes
from service.sql.options.connector_options import CONNECTORS
from service.sql.options.format_options import FORMAT_OPTIONS
from service.sql.parse.source import read_source
from service.sql.parse.statements import Option
from service.sql.pipeline import _Builder, read
from service.sql.set_keys import SETTINGS

NEEDED = {
    "kafka": "'topic' = 't', 'format' = 'json'",
    "jdbc": "'url' = 'jdbc:sqlite:/t.db', 'table-name' = 't'",
    "upsert-kafka": "'topic' = 't', 'key.format' = 'json', 'value.format' = 'json'",
}
OPTIONS = [(kind, key, k.default) for kind, known in CONNECTORS.items() for key, k in known.items() if k.default]
OF_FORMATS = [(kind, key, k.default) for kind, known in FORMAT_OPTIONS.items() for key, k in known.items() if k.default]
KEYS = [(key, known.default) for key, known in SETTINGS.items() if known.default]


def connector(kind: str, more: str = "") -> Connector:
    options = ", ".join(filter(None, (f"'connector' = '{kind}'", NEEDED.get(kind), more)))
    return read(f"CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED) WITH ({options})").tables["t"].connector


@pytest.mark.parametrize(("kind", "key", "default"), OPTIONS)
def test_an_option_that_is_not_given_has_its_default(kind: str, key: str, default: str):
    written = connector(kind, f"'{key}' = '{default}'")
    assert replace(written, options={}) == replace(connector(kind), options={})
    assert set(written.options) <= {key}


@pytest.mark.parametrize(("kind", "key", "default"), OF_FORMATS)
def test_an_option_of_a_format_has_its_default(kind: str, key: str, default: str):
    assert json_options(Format(kind, {key: default})) == json_options(Format(kind))


@pytest.mark.parametrize(("key", "default"), KEYS)
def test_a_key_that_is_not_set_has_its_default(key: str, default: str):
    mistakes = Mistakes(read_source("pipeline.sql", "", {}))
    silent, explicit = _Builder(mistakes), _Builder(mistakes)
    explicit.settings.set(Option(key, default, 0, 0))
    assert not mistakes
    assert replace(explicit.session, catalog=silent.catalog) == silent.session


def test_the_rate_of_datagen_has_its_default():
    table = read("CREATE TABLE t (a INT) WITH ('connector' = 'datagen')").tables["t"]
    assert rate(table) == int(CONNECTORS["datagen"]["rows-per-second"].default)
