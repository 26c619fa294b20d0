"""The plain manifests in k8s/ are what the chart renders, and what Kubernetes takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from scripts import plain_manifests
from service.settings import Settings
from tests.chart.rendering import CHART, scenario

FOLDER = plain_manifests.FOLDER
EXAMPLES = sorted(FOLDER.glob("examples/*.yaml"))


def objects(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("name", plain_manifests.MADE)
def test_a_manifest_is_what_the_chart_renders(name: str):
    """After a change: make chart"""
    assert (FOLDER / name).read_text() == plain_manifests.manifest(plain_manifests.MADE[name])


@pytest.mark.parametrize("name", plain_manifests.MADE)
def test_a_manifest_is_what_kubernetes_takes_and_knows_nothing_of_helm(name: str):
    assert not re.search(r"helm|checksum/", (FOLDER / name).read_text(), re.IGNORECASE)
    for found in objects(FOLDER / name):
        assert found["metadata"].get("namespace", plain_manifests.NAMESPACE) == plain_manifests.NAMESPACE
        if not found["apiVersion"].startswith("monitoring.coreos.com/"):
            kubernetes_validate.validate(found, "1.36.0", strict=True)


@pytest.mark.parametrize("name", plain_manifests.MADE)
def test_no_manifest_holds_a_secret(name: str):
    assert "Secret" not in {found["kind"] for found in objects(FOLDER / name)}


def test_what_the_readme_names_is_there_and_nothing_else():
    named = set(re.findall(r"\]\(([\w./-]+\.yaml)\)", (FOLDER / "README.md").read_text()))
    assert named == {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.yaml")}


def strimzi() -> dict[str, dict[str, Any]]:
    return {f"{o['kind']}/{o['metadata']['name']}": o for o in objects(FOLDER / "examples" / "strimzi.yaml")}


def test_strimzis_topics_are_those_of_the_pipeline_and_of_the_service():
    (values,) = (scenario(path) for path in CHART.glob("ci/03-*.yaml"))
    tables = re.findall(r"'topic' = '(\S+)'", values["pipeline"]["sql"])
    topics = Settings().topics
    wanted = {*tables, topics.dead_letter, topics.markers}
    assert {o["metadata"]["name"] for name, o in strimzi().items() if name.startswith("KafkaTopic/")} == wanted
    markers = strimzi()[f"KafkaTopic/{topics.markers}"]
    assert markers["spec"]["config"]["cleanup.policy"] == "compact"


def test_strimzis_user_is_the_one_that_the_chart_logs_in_as():
    (values,) = (scenario(path) for path in CHART.glob("ci/03-*.yaml"))
    sasl = values["kafka"]["sasl"]
    user = strimzi()[f"KafkaUser/{sasl['username']}"]
    assert user["spec"]["authentication"]["type"].upper() == sasl["mechanism"]
    acls = {(acl["resource"]["type"], acl["resource"]["name"]) for acl in user["spec"]["authorization"]["acls"]}
    topics = {o["metadata"]["name"] for o in strimzi().values() if o["kind"] == "KafkaTopic"}
    assert acls == {("topic", name) for name in topics} | {("transactionalId", "tailrace-"), ("group", "tailrace-")}
    assert sasl["existingSecret"] == sasl["username"]  # as Strimzi names a user's Secret
