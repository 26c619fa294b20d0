"""A release that cannot work is refused with a sentence that begins with the value and says what to set."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.chart.rendering import CHART, KUBERNETES, LOCAL, merged, refusals

SASL = {"mechanism": "SCRAM-SHA-512", "username": "ann", "existingSecret": "ann"}
CLOSED = {"enabled": True, "egress": {"enabled": True}}

REFUSED: list[tuple[str, Mapping[str, Any], Mapping[str, Any], str]] = [
    (
        "two drivers",
        LOCAL,
        {"replicaCount": 2},
        "replicaCount: a pipeline has one driver, two on one checkpoint would spoil it; leave it out, and scale by"
        " spark.executor.instances (mode: kubernetes) or spark.driver.cores (mode: local)",
    ),
    (
        "no pipeline",
        LOCAL,
        {"pipeline": {"sql": " "}},
        "pipeline: there is nothing to run; set pipeline.sql (--set-file pipeline.sql=pipeline.sql) or"
        " pipeline.existingConfigMap",
    ),
    (
        "two pipelines",
        LOCAL,
        {"pipeline": {"existingConfigMap": "pipelines"}},
        "pipeline: sql and existingConfigMap are both set, and one pipeline runs; leave one of them empty",
    ),
    (
        "a volume of one node with executors",
        KUBERNETES,
        {"persistence": {"accessModes": ["ReadWriteOnce"]}},
        "persistence.accessModes: with mode kubernetes executors write to the checkpoint too, which ReadWriteOnce does"
        " not allow; set it to [ReadWriteMany], or set checkpoint.url to an object store",
    ),
    (
        "no volume with executors",
        KUBERNETES,
        {"persistence": {"enabled": False}},
        "persistence.enabled: with mode kubernetes driver and executors share the checkpoint; set it to true with"
        " persistence.accessModes [ReadWriteMany], or set checkpoint.url to an object store",
    ),
    (
        "a file as an object store",
        LOCAL,
        {"checkpoint": {"url": "file:///var/lib/tailrace"}},
        "checkpoint.url: a file of the pod dies with it; leave it empty and set persistence, or name an object store",
    ),
    (
        "a path as an object store",
        LOCAL,
        {"checkpoint": {"url": "/checkpoint"}},
        'checkpoint.url: "/checkpoint" is no URL of an object store such as s3a://bucket/folder; for a folder on a'
        " volume leave it empty and set persistence",
    ),
    (
        "the scheme of other tools for S3",
        LOCAL,
        {"checkpoint": {"url": "s3://bucket/folder"}},
        "checkpoint.url: Spark reaches S3 as s3a; set it to s3a://bucket/folder",
    ),
    (
        "a driver that nobody lets make pods",
        KUBERNETES,
        {"serviceAccount": {"create": False}},
        "serviceAccount.name: the driver needs an account with the right to make pods; name the one that exists, or set"
        " serviceAccount.create to true",
    ),
    (
        "a limit below the heap",
        LOCAL,
        {"resources": {"limits": {"memory": "1Gi"}}},
        "resources.limits.memory: 1Gi leaves nothing beside the JVM's heap of 1g, where Python and DuckDB live; set it"
        " to 2048Mi or more, or lower spark.driver.memory",
    ),
    (
        "a setting that the chart makes",
        LOCAL,
        {"config": {"TAILRACE_SPARK__MASTER": "local[8]"}},
        "config.TAILRACE_SPARK__MASTER: the chart makes it from another value; set mode, spark.driver.cores or"
        " spark.apiServer",
    ),
    (
        "a password in the open",
        LOCAL,
        {"config": {"TAILRACE_KAFKA__SASL__PASSWORD": "secret"}},
        "config.TAILRACE_KAFKA__SASL__PASSWORD: the chart makes it from another value; set kafka.sasl.existingSecret",
    ),
    (
        "a key of S3 in the open",
        LOCAL,
        {"spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": "hush"}}},
        "spark.conf: everybody who may look at the pod would read the secret spark.hadoop.fs.s3a.secret.key; leave the"
        " keys of an object store out and name their Secret in checkpoint.existingSecret, for others name one in"
        " extraEnvFrom and write $(NAME), a key of it, as the value",
    ),
    (
        "a secret of the pipeline in the open",
        LOCAL,
        {"pipeline": {"variables": {"API_TOKEN": "hush"}}},
        "pipeline.variables: everybody who may look at the pod would read the secret API_TOKEN; leave it out, and take"
        " it from a Secret by extraEnv",
    ),
    (
        "SASL without a secret",
        LOCAL,
        {"kafka": {"sasl": SASL | {"existingSecret": ""}}},
        "kafka.sasl.existingSecret: SCRAM-SHA-512 needs a password; name the Secret that holds it, and"
        ' kafka.sasl.passwordKey if its key is not "password"',
    ),
    (
        "SASL without a user",
        LOCAL,
        {"kafka": {"sasl": SASL | {"username": ""}}},
        "kafka.sasl.username: SCRAM-SHA-512 needs a user; set it, or kafka.sasl.usernameKey if the Secret holds the"
        " name",
    ),
    (
        "two users",
        LOCAL,
        {"kafka": {"sasl": SASL | {"usernameKey": "user"}}},
        "kafka.sasl: username and usernameKey are both set; leave one of them empty",
    ),
    (
        "a login without a mechanism",
        LOCAL,
        {"kafka": {"sasl": SASL | {"mechanism": ""}}},
        "kafka.sasl.mechanism: there is a login but no way to use it; set PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or"
        " OAUTHBEARER",
    ),
    (
        "tokens from nowhere",
        LOCAL,
        {"kafka": {"sasl": SASL | {"mechanism": "OAUTHBEARER"}}},
        "kafka.sasl.tokenUrl: OAUTHBEARER asks somebody for its tokens; set the URL where they are given out",
    ),
    (
        "tokens that nobody asks for",
        LOCAL,
        {"kafka": {"sasl": SASL | {"scope": "kafka"}}},
        "kafka.sasl: tokenUrl and scope mean nothing to SCRAM-SHA-512; leave them empty, or set kafka.sasl.mechanism to"
        " OAUTHBEARER",
    ),
    (
        "certificates without TLS",
        LOCAL,
        {"kafka": {"tls": {"ca": {"existingSecret": "ca"}}}},
        "kafka.tls.enabled: certificates are given but TLS is not spoken; set it to true, or leave kafka.tls.ca and"
        " kafka.tls.client empty",
    ),
    (
        "a password of no key",
        LOCAL,
        {"kafka": {"tls": {"enabled": True, "client": {"passwordKey": "password"}}}},
        "kafka.tls.client.existingSecret: passwordKey names a key of it; set it to the Secret that holds the client's"
        " certificate",
    ),
    (
        "metrics read twice",
        LOCAL,
        {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}},
        "podMonitor.enabled: with a ServiceMonitor beside it every metric would be read twice; enable one of them",
    ),
    (
        "a closed network that keeps Kafka out",
        LOCAL,
        {"networkPolicy": CLOSED},
        "networkPolicy.egress.kafkaPorts: the brokers' ports are not known where the pipeline names the brokers; list"
        " them",
    ),
]


@pytest.mark.parametrize(("base", "changes", "sentence"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_it_is_refused_with_one_sentence(base: Mapping[str, Any], changes: Mapping[str, Any], sentence: str):
    assert refusals(merged(base, changes)) == [sentence]


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("spark.hadoop.fs.s3a.access.key", True),
        ("spark.hadoop.fs.s3a.bucket.of-ours.secret.key", True),
        ("spark.hadoop.fs.s3a.session.token", True),
        ("spark.hadoop.fs.azure.account.key.of-ours.dfs.core.windows.net", True),
        ("spark.hadoop.fs.azure.account.oauth2.client.secret", True),
        ("spark.hadoop.fs.gs.auth.service.account.private.key", True),
        ("spark.hadoop.javax.jdo.option.ConnectionPassword", True),
        ("spark.ssl.keyStorePassword", True),
        ("spark.authenticate.secret", True),
        ("spark.executorEnv.AWS_SECRET_ACCESS_KEY", True),
        ("spark.executorEnv.AWS_ACCESS_KEY_ID", True),
        ("spark.hadoop.fs.s3a.aws.credentials.provider", False),
        ("spark.hadoop.hadoop.security.credential.provider.path", False),
        ("spark.hadoop.fs.gs.auth.service.account.json.keyfile", False),
        ("spark.authenticate.secret.file", False),
        ("spark.kubernetes.executor.secretKeyRef.AWS_SECRET_ACCESS_KEY", False),
        ("spark.kubernetes.executor.secrets.of-ours", False),
        ("spark.kafka.clusters.a.sasl.token.mechanism", False),
        ("spark.authenticate.secretBitLength", False),
        ("spark.local.dir", False),
    ],
)
def test_a_setting_of_spark_is_known_as_a_secret_by_its_name_and_may_come_from_one(name: str, refused: bool):
    def conf(value: str) -> Mapping[str, Any]:
        return merged(LOCAL, {"spark": {"conf": {name: value}}})

    assert bool(refusals(conf("what it is"))) is refused
    assert refusals(conf("$(NAME_OF_A_VARIABLE)")) == []


@pytest.mark.parametrize("values", [LOCAL, KUBERNETES], ids=["local", "kubernetes"])
def test_the_least_that_is_needed_is_not_refused(values: Mapping[str, Any]):
    assert refusals(values) == []


def test_all_that_is_wrong_is_said_at_once():
    wrong = {"replicaCount": 1, "pipeline": {"sql": ""}, "checkpoint": {"url": "s3://b"}}
    assert [sentence.split(":")[0] for sentence in refusals(wrong)] == ["replicaCount", "checkpoint.url", "pipeline"]


def test_every_sentence_of_the_chart_is_tried_here():
    """A refusal is a line that begins with a dash and a text; one that only a cluster can provoke is named."""
    only_on_a_cluster = {"persistence.existingClaim"}
    checks = (CHART / "templates" / "_checks.tpl").read_text()
    begins = set(re.findall(r'^- (?:\{\{ printf )?"([\w.]+)', checks, re.MULTILINE))
    tried = {re.sub(r"^config\..*", "config.", sentence.split(":")[0]) for *_, sentence in REFUSED}
    assert begins - only_on_a_cluster == tried


@pytest.mark.parametrize(
    ("memory", "refused"),
    [("1024Mi", True), ("1.5Gi", False), ("1G", True), ("2G", False), ("1500000000", False), ("1Ti", False)],
)
def test_quantities_of_memory_are_compared_in_any_unit(memory: str, refused: bool):
    assert bool(refusals(merged(LOCAL, {"resources": {"limits": {"memory": memory}}}))) is refused
