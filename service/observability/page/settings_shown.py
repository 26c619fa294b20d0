"""The settings as the page lists them: every variable and its value, and for a secret only whether it is set. Also the
secrets themselves, for code that has to hide them elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pydantic import BaseModel, SecretStr

from service.observability.page.document import Setting
from service.observability.redaction import Redaction, secrets_of_tables, sensitive, shown_of_spark
from service.plan.program import Program
from service.settings import PREFIX, Settings, written


def shown(settings: Settings, redaction: Redaction) -> tuple[Setting, ...]:
    """Return every setting, in the order in which the documentation lists them."""
    return tuple(_walk(settings, PREFIX, redaction))


def secrets_of(settings: BaseModel, programs: Iterable[Program]) -> Iterator[str]:
    """Yield every value that the settings or the tables of the pipeline give as a secret."""
    for name in type(settings).model_fields:
        match getattr(settings, name):
            case SecretStr() as secret:
                yield secret.get_secret_value()
            case BaseModel() as group:
                yield from secrets_of(group, ())
            case Mapping() as conf:
                yield from sensitive(conf)
    for program in programs:
        yield from secrets_of_tables([s.table for s in program.sources] + [o.table for o in program.outputs])
        yield from secrets_of_tables(o.lookup.table for o in program.operators if o.lookup is not None)


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
                    text = redaction.text(written(field, shown_of_spark(value)))
                else:
                    text = redaction.foreign(written(field, value))
                yield Setting(variable, text, value == field.default, False, field.description or "")
