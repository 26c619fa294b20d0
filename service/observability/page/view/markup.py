"""HTML and SVG elements. Text that is not markup is always escaped, whatever it holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Markup:
    """Text that is HTML already."""

    html: str


Child = Markup | str | int | float | None | Iterable["Child"]
Attribute = str | int | float | bool | None

_VOID = {"br", "col", "hr", "img", "input", "link", "meta"}


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """Return an element. `class_` stands for class and `aria_label` for aria-label; an attribute that is None or False
    is left out, one that is True has no value. Children may be nested lists; None is nothing."""
    start = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Markup(start if name in _VOID else f"{start}{_html(children)}</{name}>")


def join(*children: Child) -> Markup:
    """Return elements one after the other."""
    return Markup(_html(children))


def hidden(text: str) -> Markup:
    """Return text for screen readers only."""
    return tag("span", text, class_="visually-hidden")


def _html(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child.html
    if isinstance(child, str | int | float):
        return escape(str(child))
    return "".join(map(_html, child))


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.removesuffix("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
