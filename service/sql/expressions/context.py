"""The context of the compilation of one expression."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from service.plan.types import DataType
from service.sql.errors import Mistakes, SqlError
from service.sql.parse.data_types import MAX_FRACTION, data_type, too_fine


@dataclass(frozen=True, slots=True)
class Context:
    """`mistakes` collects all mistakes of the file; `zone` is the session's time zone ('table.local-time-zone').
    `nanos_refused` is whether times with more digits than are kept are mistakes ('tailrace.timestamp-nanos')."""

    mistakes: Mistakes
    zone: str = "UTC"
    nanos_refused: bool = False

    def type_of(self, node: exp.DataType) -> DataType:
        """Return the type that `node` names. Raises ValueError, with a sentence for the user, if it is not
        supported."""
        type_ = data_type(node)
        fine = too_fine(node)
        if fine is not None:
            shown = fine.sql().upper()
            if self.nanos_refused:
                raise ValueError(f"times have microsecond precision, but {shown} has more than {MAX_FRACTION} digits")
            self.cut_to_microseconds(shown, node)
        return type_

    def cut_to_microseconds(self, shown: str, at: exp.Expr) -> None:
        """Note that a time loses its last digits. Raises SqlError where the session refuses such times."""
        if self.nanos_refused:
            raise SqlError(f"{shown} has more than {MAX_FRACTION} digits after the second", at=at)
        self.mistakes.note(
            f"{shown} is truncated to microseconds",
            detail="further digits are truncated",
            hint="SET 'tailrace.timestamp-nanos' = 'refuse' refuses the file instead",
            at=at,
        )
