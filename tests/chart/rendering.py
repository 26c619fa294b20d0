"""The chart as Helm renders it, as Python values."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import helm_python
import yaml

CHART = Path(__file__).parents[2] / "charts" / "tailrace"
SCENARIOS = sorted((CHART / "ci").glob("*.yaml"))

Object = dict[str, Any]

LOCAL: Mapping[str, Any] = {"pipeline": {"sql": "SELECT 1;\n"}}
"""The least that a release needs."""

KUBERNETES: Mapping[str, Any] = {**LOCAL, "mode": "kubernetes", "persistence": {"accessModes": ["ReadWriteMany"]}}
"""The least that a release with executors needs."""


@functools.cache
def _chart() -> helm_python.Chart:
    return helm_python.Chart.load(CHART)


def files(values: Mapping[str, Any], name: str = "tailrace", namespace: str = "streams") -> dict[str, str]:
    """What each template makes, by its path in `templates`; a HelmError where the chart refuses."""
    made = _chart().render(dict(values), name=name, namespace=namespace)
    return {path.partition("/templates/")[2]: text for path, text in made.items()}


def render(values: Mapping[str, Any], name: str = "tailrace", namespace: str = "streams") -> list[Object]:
    """Every object of a release."""
    made = files(values, name, namespace)
    texts = [text for path, text in made.items() if path.endswith(".yaml")]
    return [found for text in texts for found in yaml.load_all(text, yaml.CSafeLoader) if found]


def refusals(values: Mapping[str, Any]) -> list[str]:
    """The sentences with which the chart refuses to render."""
    try:
        files(values)
    except helm_python.HelmRenderError as error:
        return [line.removeprefix("- ") for line in str(error).splitlines() if line.startswith("- ")]
    return []


def scenario(path: Path) -> dict[str, Any]:
    """The values of a file in `ci`."""
    values: dict[str, Any] = yaml.safe_load(path.read_text())
    return values


@functools.cache
def rendered(path: Path) -> list[Object]:
    """Every object of the release that a file in `ci` describes; not to be changed."""
    return render(scenario(path))


def merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with `changes`, nested ones one by one."""
    both = {
        name: merged(values[name], change) if isinstance(change, Mapping) and name in values else change
        for name, change in changes.items()
    }
    return {**values, **both}


def find(objects: list[Object], kind: str, name: str | None = None) -> Object:
    """The only object of a kind, or that of a name."""
    (found,) = [o for o in objects if o["kind"] == kind and name in (None, o["metadata"]["name"])]
    return found


def kinds(objects: list[Object]) -> set[str]:
    """The kinds of the objects."""
    return {found["kind"] for found in objects}


def driver(objects: list[Object]) -> Object:
    """The pod of the driver, as the StatefulSet makes it."""
    pod: Object = find(objects, "StatefulSet")["spec"]["template"]
    return pod


def executor(objects: list[Object]) -> Object:
    """The pod that Spark makes executors from."""
    template = find(objects, "ConfigMap", "tailrace-executor")["data"]["pod.yaml"]
    pod: Object = yaml.safe_load(template)
    return pod


def pods(objects: list[Object]) -> Iterator[Object]:
    """Every pod that there will be: driver, executor, test."""
    yield driver(objects)
    if any(o["metadata"]["name"] == "tailrace-executor" and o["kind"] == "ConfigMap" for o in objects):
        yield executor(objects)
    yield from (found for found in objects if found["kind"] == "Pod")


def container(pod: Object) -> Object:
    """The container of the pod that is ours, which is the first."""
    first: Object = pod["spec"]["containers"][0]
    return first


def environment(pod: Object) -> dict[str, Any]:
    """The environment of the pod's first container: texts, or where they come from."""
    return {e["name"]: e.get("value", e.get("valueFrom")) for e in container(pod).get("env", [])}


def mounts(pod: Object) -> dict[str, Object]:
    """What is mounted in the pod's first container: path to volume."""
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
    return {mount["mountPath"]: volumes[mount["name"]] for mount in container(pod).get("volumeMounts", [])}
