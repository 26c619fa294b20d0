"""The settings as the page lists them: every variable, what it is set to, and of a secret only whether it is set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, SecretStr

from service.page.document import Setting
from service.page.redaction import HIDDEN, SENSITIVE, Redaction
from service.settings import PREFIX, Settings, written


def shown(settings: Settings, redaction: Redaction) -> tuple[Setting, ...]:
    """Every setting, in the order in which the documentation lists them."""
    return tuple(_walk(settings, PREFIX, redaction))


def _walk(group: BaseModel, prefix: str, redaction: Redaction) -> Iterator[Setting]:
    for name, field in type(group).model_fields.items():
        variable, value = prefix + name.upper(), getattr(group, name)
        match value:
            case BaseModel():
                yield from _walk(value, f"{variable}__", redaction)
            case SecretStr():
                empty = not value.get_secret_value()
                yield Setting(variable, "" if empty else None, empty, True, field.description or "")
            case _:
                if isinstance(value, Mapping):
                    value = {key: HIDDEN if SENSITIVE.search(key) else each for key, each in value.items()}
                text = redaction.foreign(written(field, value))
                yield Setting(variable, text, value == field.default, False, field.description or "")
