"""The whole service against a broker with TLS, passwords and rights: what it needs, what it refuses, what it tells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.host.machine import free_ports
from tests.kubernetes.cluster.certificates import Authority
from tests.spark.secured import READER, WRITER, SecuredKafka, files_below, leaks, leaks_below
from tests.spark.service_process import (
    QUICK,
    ROOT,
    ServiceProcess,
    all_processes,
    command_of,
    descendants,
    environment_of,
    listens,
)
from tests.spark.topics import feed, messages, upserted

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

LONG = 600.0
"""Seconds that a step of a service may take where the machine is busy: it starts a JVM, logs in over TLS with every
client, and starts once more where a worker was too late."""

FROM_FILE = "ann-hush-0001"
FROM_VARIABLE = "bob-hush-0002"
OF_THE_KEY = "key-hush-0003"
OF_SPARK = "s3a-hush-0004"
IN_THE_QUERY = "api-hush-0005"
FROM_ENVIRONMENT = "cid-hush-0006"
SECRETS = (FROM_FILE, FROM_VARIABLE, OF_THE_KEY, OF_SPARK, IN_THE_QUERY, FROM_ENVIRONMENT)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """A broker; ann may read and write dead letters, bob may write, cid may do nothing but log in."""
    passwords = {"ann": FROM_FILE, "bob": FROM_VARIABLE, "cid": FROM_ENVIRONMENT}
    broker = SecuredKafka(tmp_path_factory.mktemp("secured"), passwords, OF_THE_KEY)
    with broker.kafka:
        broker.grant("ann", READER)
        broker.grant("bob", WRITER)
        yield broker


def pipeline(sink: str) -> str:
    """Totals by name. The table that is written says for itself how to log in, the one that is read does not."""
    return f"""
        SET 'pipeline.name' = 'totals';
        CREATE TABLE orders (name STRING, amount BIGINT)
          WITH ('connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
        CREATE TABLE totals (name STRING, total BIGINT, PRIMARY KEY (name) NOT ENFORCED)
          WITH ('connector' = 'upsert-kafka', 'topic' = 'totals', 'key.format' = 'json', 'value.format' = 'json',
                {sink});
        INSERT INTO totals SELECT name, SUM(amount) FROM orders WHERE name <> '${{API_TOKEN}}' GROUP BY name;
    """


def test_a_pipeline_runs_over_tls_with_two_logins_and_no_secret_is_anywhere(
    secured: SecuredKafka,
    service: Callable[..., ServiceProcess],
    tmp_path: Path,
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BOB_PASSWORD", FROM_VARIABLE)
    monkeypatch.setenv("API_TOKEN", IN_THE_QUERY)
    given = tmp_path / "secrets" / "TAILRACE_KAFKA__SASL__PASSWORD"
    given.parent.mkdir()
    given.write_text(FROM_FILE + "\n")
    text = pipeline(secured.options("bob", "${BOB_PASSWORD}", OF_THE_KEY))
    log = tmp_path / "events"
    log.mkdir()
    conf = {
        **QUICK,
        "spark.hadoop.fs.s3a.secret.key": OF_SPARK,
        "spark.local.dir": str(temporary),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
        "spark.eventLog.compress": "false",
    }
    running = service(
        text,
        secured.kafka.bootstrap,
        own_jvm=True,
        **secured.settings("ann"),
        KAFKA__TLS__KEY_PASSWORD=OF_THE_KEY,
        SECRETS_DIR=str(given.parent),
        SPARK__CONF=json.dumps(conf),
        HTTP__PORT=str(free_ports(1)[0]),
    )
    running.start()
    internal = secured.kafka.internal_bootstrap
    running.until("the topics are made", lambda: "orders" in secured.topics(), LONG)
    feed(internal, "orders", [(i % 2, {"name": f"n{i % 3}", "amount": 1}) for i in range(30)] + [(0, b"not JSON")])

    def totals() -> dict[str, int]:
        rows = upserted([(m.key(), m.value()) for m in messages(internal, "totals")]).values()
        return {row["name"]: row["total"] for row in rows}

    def dead_letters() -> list[bytes | None]:
        return [m.value() for m in messages(internal, "tailrace.dead-letter")]

    # Two logins are two transactions on one cluster: neither takes the other's marker for its own.
    running.until("every row is counted", lambda: totals() == {f"n{i}": 10 for i in range(3)}, LONG)
    running.until("the bad record is a dead letter", lambda: dead_letters() == [b"not JSON"], LONG)
    running.until("it is ready", lambda: running.ask("/readyz")[0] == 200, LONG)

    found = []
    for path in ("/", "/status.json", "/metrics", "/readyz", "/livez"):
        status, body = running.ask(path)
        assert status == 200
        found += leaks(path, body.encode(), SECRETS)
    processes = running.processes()
    assert all(processes.values()), processes
    theirs = {*(pid for each in processes.values() for pid in each), *descendants(processes["driver"][0])}
    theirs |= {pid for pid in all_processes() if str(tmp_path).encode() in environment_of(pid)}
    for pid in theirs:
        found += leaks(f"the command line {command_of(pid)!r}", command_of(pid).encode(), SECRETS)
        found += leaks(f"the environment of {command_of(pid)!r}", environment_of(pid), [FROM_FILE])
    assert {address for pid in processes["jvm"] for address in listens(pid)} == {"127.0.0.1"}
    planted = [given, tmp_path / "pipeline.sql"]
    for folder in (temporary, tmp_path):
        found += leaks_below(folder, SECRETS, planted)
    assert "arguments" not in {path.name for path in files_below(temporary)}, (
        "the file with the arguments of the JVM is there"
    )
    assert all(folder.stat().st_mode & 0o077 == 0 for folder in temporary.glob("tailrace-*"))

    # One password becomes wrong: batches fail, in the JVM and in the writer, and the service gives up.
    secured.change_password("ann", "another")
    try:
        secured.kafka.restart()
        assert running.wait(LONG) == 2
    finally:
        secured.change_password("ann", FROM_FILE)
    (last,) = [event for event in running.events() if event["event"] == "gave up"]
    assert "authentication" in str(last["error"]).lower()
    for folder in (temporary, tmp_path):
        found += leaks_below(folder, SECRETS, planted)
    assert found == []
    assert "SparkListenerApplicationStart" in "".join(each.read_text() for each in log.rglob("*") if each.is_file())


@pytest.mark.parametrize("arguments", [["check"], ["explain"], ["explain", "--json"]], ids=" ".join)
@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_what_is_reported_of_a_pipeline_that_does_not_run_has_no_secret(
    arguments: list[str], right: bool, tmp_path: Path
) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    options = f"""'properties.security.protocol' = 'SASL_SSL', 'properties.sasl.mechanism' = 'PLAIN',
                  'properties.sasl.jaas.config' = '{module} required username="ann" password="{FROM_FILE}";',
                  'properties.ssl.key.password' = '${{KEY_PASSWORD}}'"""
    text = pipeline(options)
    if not right:
        text += "INSERT INTO totals SELECT ${KEY_PASSWORD}; SET 'a' = ${API_TOKEN}; SET 'b' = 'password=\"" + FROM_FILE
    file = tmp_path / "pipeline.sql"
    file.write_text(text)
    run = subprocess.run(
        [sys.executable, "-m", "service", *arguments, str(file)],
        cwd=ROOT,
        env={**os.environ, "KEY_PASSWORD": OF_THE_KEY, "API_TOKEN": IN_THE_QUERY},
        capture_output=True,
        timeout=LONG,
    )
    assert run.returncode == (0 if right else 2)
    assert run.stdout or run.stderr
    assert leaks("the output", run.stdout + run.stderr, SECRETS) == []


REFUSED = {
    "password": ("Authentication failed", "check the user, the password and the mechanism"),
    "authority": ("certificate verify failed", "check the certificates"),
    "certificate": ("certificate", "check the certificates"),
    "right": ("cannot be created", "grant"),
}
"""What is wrong, what is said of it, and what to do."""


def test_a_login_that_is_refused_is_reported_before_anything_is_written(
    secured: SecuredKafka,
    service: Callable[..., ServiceProcess],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("API_TOKEN", IN_THE_QUERY)
    proper = {
        **secured.settings("cid"),
        "KAFKA__SASL__PASSWORD": FROM_ENVIRONMENT,
        "KAFKA__TLS__KEY_PASSWORD": OF_THE_KEY,
    }
    changes = {
        "password": {"KAFKA__SASL__PASSWORD": "gu3ss-hush"},
        "authority": {"KAFKA__TLS__CA_FILE": str(Authority(tmp_path / "other").file)},
        "certificate": dict.fromkeys(("KAFKA__TLS__CERTIFICATE_FILE", "KAFKA__TLS__KEY_FILE"), ""),
        "right": {},
    }
    refused = {
        wrong: service(
            pipeline("'tailrace.headers' = 'false'").replace("'totals',", f"'no-{wrong}',"),
            secured.kafka.bootstrap,
            folder=tmp_path / wrong,
            HTTP__PORT=str(port),
            **proper | changes[wrong],
        )
        for wrong, port in zip(REFUSED, free_ports(len(REFUSED)), strict=True)
    }
    for each in refused.values():
        each.start()

    def readiness(running: ServiceProcess) -> set[int]:
        """What it answers until it ends."""
        seen: set[int] = set()
        while not running.ended():
            seen.add(running.ask("/readyz")[0])
            time.sleep(0.1)
        return seen

    with ThreadPoolExecutor(len(refused)) as pool:  # each is asked while another one is slow to answer
        seen = dict(zip(refused, pool.map(readiness, refused.values()), strict=True))
    topics = secured.topics()
    for wrong, each in refused.items():
        sentence, hint = REFUSED[wrong]
        assert each.wait(LONG) == 2, each.log
        assert (sentence in each.log, hint in each.log) == (True, True), each.log
        assert seen[wrong] == {0, 503}, f"{wrong}: it was never ready, and always said so"
        assert leaks("the log", each.log.encode(), [*SECRETS, "gu3ss-hush"]) == []
        assert f"no-{wrong}" not in topics
        assert not list(each.folder.rglob("offsets"))
