"""Nothing secret is on the page, wherever it was given and in whatever form it turns up."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from service.observability.redaction import (
    HIDDEN,
    NO_SECRET_NAME,
    SECRET_NAME,
    SENSITIVE,
    Redaction,
    shown_of_spark,
)
from tests.page.stage import Stage

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = 'pä"ss\\word-9'
KEY_PASSWORD = "kp-55-hush"
TABLE_PASSWORD = "table-hush-77"
CLIENT_SECRET = "client-hush-88"
SPARK_SECRET = "spark-hush-99"
REGISTRY_SECRET = "registry-hush-00"
DATABASE_SECRET = "database-hush-11"
URL_SECRET = "url/hush+22"
SECRETS = (
    DATABASE_SECRET,
    URL_SECRET,
    REGISTRY_SECRET,
    PASSWORD,
    KEY_PASSWORD,
    TABLE_PASSWORD,
    CLIENT_SECRET,
    SPARK_SECRET,
)

PIPELINE = f"""
SET 'pipeline.name' = 'guarded';
CREATE TABLE c (who STRING, city STRING) WITH ('connector' = 'jdbc', 'table-name' = 'c', 'username' = 'ann',
  'url' = 'jdbc:postgresql://db/c?password={quote(URL_SECRET, safe="")}', 'password' = '{DATABASE_SECRET}');
CREATE TABLE a (who STRING, word STRING, at AS PROCTIME())
WITH ('connector' = 'kafka', 'topic' = 'a', 'format' = 'json',
  'properties.security.protocol' = 'SASL_SSL', 'properties.sasl.mechanism' = 'PLAIN',
  'properties.sasl.jaas.config' =
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="{TABLE_PASSWORD}";');
CREATE TABLE b (who STRING) WITH ('connector' = 'kafka', 'topic' = 'b', 'format' = 'avro-confluent',
  'avro-confluent.url' = 'http://registry:8081', 'avro-confluent.basic-auth.user-info' = 'ann:{REGISTRY_SECRET}',
  'properties.sasl.jaas.config' =
    'x.OAuthBearerLoginModule required clientId="me" clientSecret="{CLIENT_SECRET}";');
INSERT INTO b SELECT a.who FROM a JOIN c FOR SYSTEM_TIME AS OF a.at ON a.who = c.who
  AND city <> '{DATABASE_SECRET}' AND city <> '{URL_SECRET}'
WHERE word <> '{TABLE_PASSWORD}';
"""

ENVIRONMENT = {
    "TAILRACE_KAFKA__SASL__MECHANISM": "PLAIN",
    "TAILRACE_KAFKA__SASL__USERNAME": "bob",
    "TAILRACE_KAFKA__SASL__PASSWORD": PASSWORD,
    "TAILRACE_KAFKA__TLS__KEY_PASSWORD": KEY_PASSWORD,
    "TAILRACE_CHECKPOINT": "s3a://user:url-hush@bucket/path",
    "TAILRACE_SPARK__CONF": json.dumps({"spark.hadoop.fs.s3a.secret.key": SPARK_SECRET, "spark.ui.enabled": "false"}),
}


def forms(secret: str) -> set[str]:
    return {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1], quote(secret, safe="")}


@pytest.fixture
def stage() -> Stage:
    stage = Stage(PIPELINE, environment=ENVIRONMENT)
    stage.start()
    everything = " ".join(form for secret in SECRETS for form in sorted(forms(secret)))
    sample = {"reason": everything, "detail": everything, "origin": "a/0, offset 1", "value": everything, "whole": True}
    stage.play("guarded", {"a": [5]}, samples=[{**sample, "late": False}, {**sample, "late": True}])
    stage.observer.failed("guarded", everything, 1, 1.0, f"in full: {everything}")
    stage.observer.waiting("guarded", everything)
    return stage


@pytest.mark.parametrize("path", ["/", "/status.json"])
def test_planted_secrets_are_nowhere(stage: Stage, path: str):
    text = stage.answers[path]().body.decode()
    for secret in [*SECRETS, "url-hush"]:
        for form in forms(secret) | {json.dumps(form)[1:-1] for form in forms(secret)}:
            assert form not in text
    assert HIDDEN in text


def test_a_secret_in_the_query_itself_is_hidden_in_the_plan(stage: Stage):
    (job,) = stage.json()["jobs"]
    (filtered,) = [step for step in job["plan"]["steps"] if step["kind"] == "filter"]
    assert f"'{HIDDEN}'" in filtered["text"]


def test_settings_say_of_a_secret_only_whether_it_is_set(stage: Stage):
    settings = {s["name"]: s for s in stage.json()["settings"]}
    password = settings["TAILRACE_KAFKA__SASL__PASSWORD"]
    assert (password["value"], password["secret"], password["default"]) == (None, True, False)
    assert settings["TAILRACE_KAFKA__SASL__USERNAME"]["value"] == "bob"
    assert settings["TAILRACE_CHECKPOINT"]["value"] == f"s3a://{HIDDEN}@bucket/path"
    conf = json.loads(settings["TAILRACE_SPARK__CONF"]["value"])
    assert conf == {"spark.hadoop.fs.s3a.secret.key": HIDDEN, "spark.ui.enabled": "false"}
    assert (settings["TAILRACE_BATCH__TICK"]["value"], settings["TAILRACE_BATCH__TICK"]["default"]) == ("1s", True)


NAMES = {
    "spark.hadoop.fs.azure.account.key.of-ours.dfs.core.windows.net": True,
    "spark.hadoop.fs.s3a.encryption.key": True,
    "spark.hadoop.fs.s3a.server-side-encryption.key": True,
    "spark.hadoop.fs.azure.sas.of-ours.dfs.core.windows.net": False,
    "ssl.keystore.key": True,
    "sasl.jaas.config": True,
    "API_KEY": True,
    "DB_PASSWORD": True,
    "sasl.oauthbearer.token.endpoint.url": False,
    "TAILRACE_SPARK__SECRET_FILE": False,
    "spark.kubernetes.executor.secretKeyRef.AWS_SECRET_ACCESS_KEY": False,
    "spark.ui.enabled": False,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_secret_is_known_by_its_name(name: str):
    assert SENSITIVE.search(name) is NAMES[name]


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("spark.hadoop") or NAMES[n]])
def test_of_settings_of_hadoop_and_of_secrets_only_names_are_shown(name: str):
    assert shown_of_spark({name: "hush"}) == {name: HIDDEN}


def test_harmless_settings_of_spark_are_shown():
    conf = {"spark.sql.shuffle.partitions": "4", "spark.executor.memory": "2g"}
    assert shown_of_spark(conf) == conf


@pytest.mark.parametrize("name", [n for n, secret in NAMES.items() if secret])
def test_what_looks_like_a_secret_is_hidden_in_the_words_of_others(name: str):
    assert "hush" not in Redaction(()).foreign(f"cannot use {name}=hush here; {name}: 'hush'")


def test_the_chart_knows_secrets_by_the_same_names():
    template = (ROOT / "charts/tailrace/templates/_checks.tpl").read_text()
    for words in (SECRET_NAME, NO_SECRET_NAME):
        assert '"' + words.replace("\\", "\\\\") + '"' in template


def test_a_secret_that_is_not_set_is_shown_as_empty():
    settings = {s["name"]: s for s in Stage().json()["settings"]}
    assert settings["TAILRACE_KAFKA__SASL__PASSWORD"]["value"] == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=abc, user=ann", f"password={HIDDEN}, user=ann"),
        ('password="a b c";', f"password={HIDDEN};"),
        ('{"Secret_Key": "abc", "n": 1}', f'{{"Secret_Key": {HIDDEN}, "n": 1}}'),
        ("?access_key=abc&n=1", f"?access_key={HIDDEN}&n=1"),
        ("at kafka://ann:abc@host:1/x", f"at kafka://{HIDDEN}@host:1/x"),
        ("-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\nend", f"{HIDDEN}\nend"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII cut off", HIDDEN),
    ],
)
def test_what_looks_like_a_secret_in_the_words_of_others_is_hidden(text: str, shown: str):
    assert Redaction([]).foreign(text) == shown


def test_words_about_secrets_stay():
    text = "no route to host: tokens and passwords are fine words"
    assert Redaction(["hush"]).foreign(text) == text


def test_an_empty_or_very_short_secret_does_not_blot_out_every_text():
    assert Redaction(["", "a", "ab"]).text("abab") == "abab"


def test_of_two_secrets_the_longer_one_is_hidden_whole():
    assert Redaction(["hush", "hush-hush"]).text("hush-hush hush") == f"{HIDDEN} {HIDDEN}"


def test_rows_are_shown_on_request_alone():
    assert Stage().settings.http.samples == 0
