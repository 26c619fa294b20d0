"""Every public name says what it is: modules and classes with a noun, functions with a verb, in whole sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = [
    path.relative_to(ROOT).as_posix()
    for package in ("operators", "service")
    for path in sorted((ROOT / package).rglob("*.py"))
]
"""The path of every module."""

NO_VERB = re.compile(
    r"(The|A|An|What|Whether|How|Which|Why|Who|Whose|Where|When|That|This|It|Those|All|One|Each|Every|Some|No|Nothing|`)\b"
    r"|`"
)
"""Words with which no imperative begins."""

NO_NOUN = re.compile(r"(What|Whether|How|Which|Why|Who|Whose|Where|When|That|This|It|Return|Yield|Is|Are)\b")
"""Words with which no name of a thing begins."""


@dataclass(frozen=True)
class Name:
    """A public module, class or function, and where it stands."""

    place: str
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    owner: str = ""

    @property
    def summary(self) -> str:
        """The first paragraph of its docstring, as one line."""
        return " ".join((ast.get_docstring(self.node) or "").split("\n\n")[0].split())

    @property
    def is_property(self) -> bool:
        return not isinstance(self.node, ast.Module) and any(
            "property" in ast.unparse(each) for each in self.node.decorator_list
        )


def public(path: str, node: ast.Module | ast.ClassDef, owner: str = "") -> Iterator[Name]:
    yield Name(f"{path}:{getattr(node, 'lineno', 1)} {owner or 'module'}", node)
    for each in node.body:
        if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
            yield from public(path, each, each.name)
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("_"):
            yield Name(f"{path}:{each.lineno} {owner + '.' if owner else ''}{each.name}", each, owner)


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax of every module, by its path. Parsed when a test asks: all processes that run tests load this file,
    one runs it."""
    return {path: ast.parse((ROOT / path).read_text()) for path in MODULES}


@cache
def names() -> list[Name]:
    return [name for path, tree in trees().items() for name in public(path, tree)]


@cache
def classes() -> dict[str, ast.ClassDef]:
    return {node.name: node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def bases(owner: str) -> list[str]:
    return [name for base in classes()[owner].bases if (name := ast.unparse(base).split("[")[0]) in classes()]


@cache
def methods(owner: str) -> dict[str, bool]:
    """The members of a class and of those that it extends, and whether a docstring describes them."""
    found = {name: text for base in bases(owner) for name, text in methods(base).items()}
    for each in classes()[owner].body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            found[each.name] = found.get(each.name, False) or ast.get_docstring(each) is not None
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found.setdefault(each.target.id, False)
    return found


@cache
def protocols() -> list[str]:
    return [
        owner
        for owner, node in classes().items()
        if any(ast.unparse(base).startswith("Protocol") for base in node.bases)
    ]


def described(owner: str, method: str) -> bool:
    """Whether a class that `owner` extends, or a protocol all of which it has, says what `method` does."""
    if methods(owner).get(method):
        return True
    fitting = [each for each in protocols() if methods(each).keys() <= methods(owner).keys()]
    return any(methods(each).get(method) for each in fitting)


def test_every_public_name_has_a_docstring():
    missing = [
        name.place
        for name in names()
        if not name.summary
        and not (name.owner and isinstance(name.node, ast.FunctionDef) and described(name.owner, name.node.name))
    ]
    assert missing == []


def test_the_first_paragraph_of_a_docstring_is_a_whole_sentence():
    assert [
        f"{name.place}: {name.summary}"
        for name in names()
        if name.summary and not re.search(r"[.:?]$|https://\S+$", name.summary)
    ] == []


def test_the_docstring_of_a_function_begins_with_a_verb():
    found = [
        f"{name.place}: {name.summary}"
        for name in names()
        if isinstance(name.node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not name.is_property
        and NO_VERB.match(name.summary)
    ]
    assert found == []


def test_the_docstring_of_a_class_names_a_thing():
    found = [
        f"{name.place}: {name.summary}"
        for name in names()
        if isinstance(name.node, ast.ClassDef) and NO_NOUN.match(name.summary)
    ]
    assert found == []


SHAPES = ("canal", "changelog", "debezium", "maxwell", "ogg")
ENCODINGS = [f"service/formats/changes/{name}.py" for name in ("change_encodings", *SHAPES)]
SHOWN = [
    *(path for path in MODULES if re.fullmatch(r"service/plan/passes/[a-z]\w*\.py", path)),
    *ENCODINGS,
    "operators/windows/shapes.py",
    "operators/windows/slices.py",
]
"""The modules of which a reader wants to see what they do: passes, encodings of changes, windows."""


@pytest.mark.parametrize("path", SHOWN)
def test_a_pass_an_encoding_and_the_shapes_of_windows_show_an_example(path: str):
    shown = [name.node for name in names() if name.place.startswith(f"{path}:")]
    assert any(">>> " in (ast.get_docstring(node) or "") for node in shown)


def test_each_shape_of_a_window_shows_an_example():
    shown = {
        getattr(name.node, "name", ""): ">>> " in (ast.get_docstring(name.node) or "")
        for name in names()
        if name.place.startswith("operators/windows/shapes.py:")
    }
    # Attached windows have no shape of their own.
    assert {name for name, text in shown.items() if not text} == {"", "Attached"}


def test_each_encoding_of_changes_shows_an_example():
    written = [
        name
        for name in names()
        if name.place.split(":")[0] in ENCODINGS
        and isinstance(name.node, ast.FunctionDef)
        and ast.unparse(name.node.returns or ast.Constant(None)) in ("EncodedChanges", "ChangeEncoding")
    ]
    assert len(written) > len(ENCODINGS)
    assert [name.place for name in written if ">>> " not in (ast.get_docstring(name.node) or "")] == []


def test_a_module_of_tests_says_what_they_are_about():
    found = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert found == []
