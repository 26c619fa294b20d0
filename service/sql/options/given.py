"""The options of a WITH clause, and how each is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.sql.errors import Mistakes, did_you_mean
from service.sql.options.known import OptionSpec
from service.sql.parse.statements import Option


@dataclass(frozen=True, slots=True)
class GivenOptions:
    """The options of the WITH clause, written at `at`, of a table with connector `kind`."""

    kind: str
    given: Mapping[str, Option]
    mistakes: Mistakes
    at: int

    def read(self, option: Option, known: OptionSpec) -> Any:
        """Return the value of an option; None, with the mistake noted, if it is invalid."""
        try:
            return known.kind.read(option.value)
        except ValueError as error:
            hint = did_you_mean(option.value, known.values).replace('"', "'")
            self.mistakes.add(
                f"option '{option.key}' cannot be '{option.value}'",
                detail=f"it must be {error}",
                hint=hint,
                at=option.value_at,
            )
            return None

    def missing(self, key: str, why: str = "") -> None:
        """Note that an option is missing, and why it is needed; by default, because the connector needs it."""
        self.mistakes.add(f"option '{key}' is missing", detail=why or f"connector '{self.kind}' needs it", at=self.at)
