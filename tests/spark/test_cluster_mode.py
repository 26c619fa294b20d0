"""The settings of Spark where tasks run in executors: on Kubernetes, elsewhere, and none of them on a local master."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from service.settings import ConfigError, Spark, load
from service.spark.driver import cluster_mode
from service.spark.driver.class_path import class_path, spark_home
from service.spark.driver.configuration import configured
from service.spark.driver.jvm_options import words_of
from service.spark.query.attempts import TRIES

JARS, CLIENTS = [Path(__file__).resolve(), Path(pytest.__file__).resolve()], [Path(os.__file__).resolve()]
"""Any files: of an archive nothing counts here but that it is there."""

POD = {
    "TAILRACE_SPARK__MASTER": "k8s://https://kubernetes.default.svc:443",
    "TAILRACE_SPARK__SECRET_FILE": "/etc/tailrace/spark/secret",
    "TAILRACE_SPARK__KUBERNETES__NAMESPACE": "streams",
    "TAILRACE_SPARK__KUBERNETES__DRIVER_POD": "tailrace-0",
    "TAILRACE_SPARK__KUBERNETES__DRIVER_ADDRESS": "10.1.2.3",
    "TAILRACE_SPARK__KUBERNETES__IMAGE": "tailrace:0.1.0",
    "TAILRACE_SPARK__KUBERNETES__SERVICE_ACCOUNT": "tailrace",
    "TAILRACE_SPARK__KUBERNETES__POD_TEMPLATE": "/etc/tailrace/executor/pod.yaml",
}


SECURED = {
    "spark.authenticate": "true",
    "spark.authenticate.secret.file": "",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.network.crypto.saslFallback": "false",
    "spark.io.encryption.enabled": "true",
}
"""What keeps strangers out and lets nobody listen, but for the path of the secret."""


def spark(**changes: str) -> Spark:
    return load(POD | changes).spark


def configuration(settings: Spark) -> dict[str, str]:
    required = cluster_mode.required(
        settings, settings.conf, jars=JARS, clients=CLIENTS, python_path=["/startup", "/code"], java_options="-Dlog"
    )
    return cluster_mode.suggested(settings) | settings.conf | required


def test_a_local_master_has_its_heap_and_listens_to_this_machine_only():
    settings = configuration(
        Spark(master="local[2,4]", driver_memory="2g", conf={"spark.driver.bindAddress": "0.0.0.0"})
    )
    assert settings == {
        "spark.driver.memory": "2g",
        "spark.locality.wait": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.authenticate": "true",
    }


@pytest.mark.parametrize(
    ("master", "local", "kubernetes"),
    [
        ("local", True, False),
        ("local[*,4]", True, False),
        ("local-cluster[2,1,2048]", False, False),
        ("spark://host:7077", False, False),
        ("k8s://https://host:443", False, True),
    ],
)
def test_masters_are_distinguished(master: str, local: bool, kubernetes: bool):
    assert cluster_mode.is_local(master) is local
    assert cluster_mode.is_kubernetes(master) is kubernetes


def test_executors_elsewhere_fetch_the_archives_from_the_driver(tmp_path: Path):
    (tmp_path / "secret").write_text("shared")
    settings = configuration(Spark(master="spark://host:7077", secret_file=str(tmp_path / "secret")))
    assert settings["spark.jars"].split(",") == [str(jar) for jar in (*JARS, *CLIENTS)]
    assert settings["spark.executor.extraJavaOptions"] == "-Dlog"
    assert settings["spark.executorEnv.PYTHONPATH"] == "/startup:/code"
    assert not any("kubernetes" in name or name.endswith("extraClassPath") for name in settings)


@pytest.mark.parametrize("given", [spark(), Spark(master="local-cluster[2,1,2048]")])
def test_executors_that_have_the_files_of_the_driver_have_its_class_path(given: Spark):
    settings = configuration(given)
    path = class_path(spark_home(), JARS, {}, CLIENTS)
    assert settings["spark.executor.extraClassPath"] == path
    assert path.split(os.pathsep)[:2] == [str(jar) for jar in JARS]
    assert path.split(os.pathsep)[-1] == str(CLIENTS[0])
    assert not {"spark.jars", "spark.driver.extraClassPath"} & settings.keys()


def test_what_the_user_puts_on_the_class_path_of_executors_comes_before_sparks_archives():
    settings = configuration(spark(TAILRACE_SPARK__CONF='{"spark.executor.extraClassPath": "/x.jar"}'))
    assert settings["spark.executor.extraClassPath"].split(os.pathsep)[:3] == [*map(str, JARS), "/x.jar"]


def test_executors_map_the_archive_of_classes_of_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    archive = tmp_path / "with space.jsa"
    archive.touch()
    monkeypatch.setattr("service.spark.driver.class_path.archive_of_classes", lambda jars: archive)
    options = configuration(spark())["spark.executor.extraJavaOptions"]
    assert words_of(options)[0] == "-Dlog"
    assert words_of(options)[-1] == f"-XX:SharedArchiveFile={archive}"
    archive.unlink()
    assert configuration(spark())["spark.executor.extraJavaOptions"] == "-Dlog"


def test_the_driver_says_which_pod_it_is_and_where():
    settings = configuration(spark())
    assert settings["spark.kubernetes.namespace"] == "streams"
    assert settings["spark.kubernetes.driver.pod.name"] == "tailrace-0"
    assert settings["spark.driver.host"] == "10.1.2.3"
    assert (settings["spark.driver.port"], settings["spark.driver.blockManager.port"]) == ("7078", "7079")
    assert settings["spark.blockManager.port"] == "7079"
    assert settings["spark.kubernetes.container.image"] == "tailrace:0.1.0"


def test_an_address_of_ipv6_is_put_in_brackets():
    assert (
        configuration(spark(TAILRACE_SPARK__KUBERNETES__DRIVER_ADDRESS="fd00::7"))["spark.driver.host"] == "[fd00::7]"
    )


def test_the_executors_pods_are_made_from_the_template():
    settings = configuration(spark())
    assert settings["spark.kubernetes.executor.podTemplateFile"] == "/etc/tailrace/executor/pod.yaml"
    assert settings["spark.kubernetes.executor.podTemplateContainerName"] == "spark-kubernetes-executor"
    bare = configuration(spark(TAILRACE_SPARK__KUBERNETES__POD_TEMPLATE=""))
    assert not any("podTemplate" in name for name in bare)


def test_nothing_but_pods_is_asked_of_the_api_server():
    settings = configuration(spark(TAILRACE_SPARK__CONF='{"spark.kubernetes.executor.disableConfigMap": "false"}'))
    assert settings["spark.kubernetes.executor.disableConfigMap"] == "true"
    assert settings["spark.kubernetes.driver.service.deleteOnTermination"] == "false"
    assert settings["spark.kubernetes.driver.ownPersistentVolumeClaim"] == "false"
    assert settings["spark.kubernetes.driver.reusePersistentVolumeClaim"] == "false"


def test_who_shares_a_secret_encrypts_and_the_secret_is_in_no_setting(tmp_path: Path):
    file = tmp_path / "secret"
    file.write_text("do not tell")
    settings = configuration(spark(TAILRACE_SPARK__SECRET_FILE=str(file)))
    assert {name: settings.get(name) for name in SECURED} == {**SECURED, "spark.authenticate.secret.file": str(file)}
    assert "do not tell" not in str(settings)


def test_the_users_own_settings_do_not_weaken_what_is_said_over_the_network(tmp_path: Path):
    file = tmp_path / "secret"
    file.write_text("do not tell")
    weaker = dict.fromkeys(SECURED, "false") | {"spark.authenticate.secret": "known"}
    settings = configuration(spark(TAILRACE_SPARK__SECRET_FILE=str(file), TAILRACE_SPARK__CONF=json.dumps(weaker)))
    changed = {name for name, value in SECURED.items() if value and settings[name] != value}
    assert changed == {"spark.io.encryption.enabled"}, "that one is theirs to weigh against speed"


def test_elsewhere_spark_is_given_the_secret_itself(tmp_path: Path):
    file = tmp_path / "secret"
    file.write_text("known to both\n")
    settings = configuration(Spark(master="local-cluster[2,1,2048]", secret_file=str(file)))
    assert settings["spark.authenticate.secret"] == "known to both"
    assert settings["spark.network.crypto.enabled"] == "true"


def test_executors_that_spark_starts_on_this_machine_are_given_a_secret_of_their_own():
    first, second = (configuration(Spark(master="local-cluster[2,1,2048]")) for _ in range(2))
    assert first["spark.authenticate"] == "true"
    assert len(first["spark.authenticate.secret"]) == 64
    assert first["spark.authenticate.secret"] != second["spark.authenticate.secret"]


@pytest.mark.parametrize("master", ["spark://host:7077", POD["TAILRACE_SPARK__MASTER"]])
def test_executors_that_others_start_must_know_a_secret(master: str):
    with pytest.raises(ConfigError) as refused:
        load(POD | {"TAILRACE_SPARK__MASTER": master, "TAILRACE_SPARK__SECRET_FILE": ""})
    assert "executors must authenticate themselves: TAILRACE_SPARK__SECRET_FILE must name" in refused.value.mistakes[0]


def test_sizes_of_executors_come_from_the_settings():
    settings = configuration(
        spark(
            TAILRACE_SPARK__EXECUTOR__INSTANCES="3",
            TAILRACE_SPARK__EXECUTOR__CORES="4",
            TAILRACE_SPARK__EXECUTOR__MEMORY="2g",
            TAILRACE_SPARK__EXECUTOR__MEMORY_OVERHEAD="5g",
        )
    )
    sizes = {name: settings[f"spark.executor.{name}"] for name in ("instances", "cores", "memory", "memoryOverhead")}
    assert sizes == {"instances": "3", "cores": "4", "memory": "2g", "memoryOverhead": "5g"}


def test_a_task_is_tried_more_often_than_workers_wait_for_it():
    """A local master says it for itself."""
    assert (
        int(configuration(spark())["spark.task.maxFailures"])
        == int(Spark().master.partition(",")[2].rstrip("]"))
        > TRIES
    )
    assert configuration(spark(TAILRACE_SPARK__CONF='{"spark.task.maxFailures": "5"}'))["spark.task.maxFailures"] == "5"


def test_the_users_own_settings_change_what_is_suggested_and_add_to_what_is_required():
    conf = '{"spark.locality.wait": "1s", "spark.driver.port": "1234", "spark.executor.extraJavaOptions": "-Xss4m"}'
    settings = configuration(spark(TAILRACE_SPARK__CONF=conf))
    assert settings["spark.locality.wait"] == "1s"
    assert settings["spark.driver.port"] == "7078"
    options = words_of(settings["spark.executor.extraJavaOptions"])
    assert (options[0], options[-1]) == ("-Dlog", "-Xss4m")


def test_executors_are_tuned_as_the_driver_is_and_the_users_own_collector_wins():
    assert "-XX:+UseParallelGC" in configured(spark(), JARS, "")["spark.executor.extraJavaOptions"]
    conf = '{"spark.executor.extraJavaOptions": "-XX:+UseG1GC"}'
    options = configured(spark(TAILRACE_SPARK__CONF=conf), JARS, "")["spark.executor.extraJavaOptions"].split()
    assert "-XX:+UseParallelGC" not in options
    assert options[-1] == "-XX:+UseG1GC"
    assert "-XX:MaxNewSize=128m" in options


def test_a_master_on_kubernetes_that_lacks_its_pod_is_refused_with_what_is_missing():
    with pytest.raises(ConfigError) as refused:
        load({name: value for name, value in POD.items() if not name.endswith(("DRIVER_POD", "IMAGE"))})
    assert refused.value.mistakes == [
        "TAILRACE_SPARK: the master is Kubernetes, which needs"
        " TAILRACE_SPARK__KUBERNETES__DRIVER_POD, TAILRACE_SPARK__KUBERNETES__IMAGE"
    ]
