"""One name, one thing: a reader who knows a class by its name is not led to another."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_no_public_class_name_stands_twice():
    names = Counter(
        node.name
        for package in ("operators", "service")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name: count for name, count in names.items() if count > 1} == {}
