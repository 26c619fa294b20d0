"""Manifests for those who do without Helm: renders of the chart, without what only Helm reads.
`python -m scripts.plain_manifests` writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import helm_python
import yaml

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "tailrace"
FOLDER = ROOT / "k8s"
NAMESPACE = "tailrace"


class Recipe(NamedTuple):
    """What a manifest is made from: values of a scenario, and which kinds of objects are taken (none named: all)."""

    values: str
    kinds: frozenset[str] = frozenset()


MADE: Mapping[str, Recipe] = {
    "local.yaml": Recipe("01-local-values.yaml"),
    "kubernetes.yaml": Recipe("02-kubernetes-values.yaml"),
    "examples/checkpoint-s3.yaml": Recipe("07-s3-values.yaml"),
    "examples/checkpoint-gcs.yaml": Recipe("08-gcs-values.yaml"),
    "examples/backfill.yaml": Recipe("15-backfill-values.yaml", frozenset({"StatefulSet"})),
    "examples/service-monitor.yaml": Recipe("09-watched-values.yaml", frozenset({"ServiceMonitor"})),
    "examples/network-policy.yaml": Recipe("11-closed-network-values.yaml", frozenset({"NetworkPolicy"})),
}

CHANGES: Mapping[str, Any] = {
    "tests": {"enabled": False},
    # A secret that stands in a file that everybody can read would be none.
    "spark": {"authentication": {"existingSecret": "tailrace-spark"}},
}

HEAD = "# Made from the chart with {values} by `python -m scripts.plain_manifests`.\n# README.md says what to change.\n"

RESTRICTED: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
}


def manifest(recipe: Recipe) -> str:
    """The text of a manifest."""
    values = yaml.safe_load((CHART / "ci" / recipe.values).read_text())
    spark = {**values.get("spark", {}), **CHANGES["spark"]}
    with helm_python.Chart.load(CHART) as chart:
        files = chart.render({**values, **CHANGES, "spark": spark}, name="tailrace", namespace=NAMESPACE)
    objects = [found for found in _objects(files) if not recipe.kinds or found["kind"] in recipe.kinds]
    if not recipe.kinds:
        objects.insert(0, dict(RESTRICTED))
    texts = [yaml.dump(found, Dumper=_Dumper, sort_keys=False, width=10_000) for found in objects]
    return HEAD.format(values=f"ci/{recipe.values}") + "---\n".join(texts)


def _objects(files: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for path, text in sorted(files.items(), key=lambda item: ("driver.yaml" in item[0], item[0])):
        for found in yaml.safe_load_all(text) if path.endswith(".yaml") else ():
            if found:
                yield _without_helm(found)


def _without_helm(node: Any) -> Any:
    """The object without labels and annotations that Helm alone reads, or that only a render keeps true."""
    if isinstance(node, list):
        return [_without_helm(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        name: _without_helm(value)
        for name, value in node.items()
        if not name.startswith(("helm.sh/", "checksum/")) and name != "app.kubernetes.io/managed-by"
    }
    return {name: value for name, value in kept.items() if name != "annotations" or value}


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, lists indented."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def main() -> None:
    """Write them all."""
    for name, recipe in MADE.items():
        (FOLDER / name).write_text(manifest(recipe))


if __name__ == "__main__":
    main()
