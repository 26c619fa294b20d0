"""eKuiper's windows in GROUP BY, with what may follow them: FILTER (WHERE c) and OVER (WHEN c PARTITION BY e, ...).

A window becomes exp.Anonymous like any call, with a keyword argument for each clause: FILTER, WHEN, PARTITION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import TokenType

from service.sql.parse.call_grammar import keyword

if TYPE_CHECKING:
    _Base = Parser
else:
    _Base = object

STREAM_WINDOWS = (
    "TUMBLINGWINDOW",
    "HOPPINGWINDOW",
    "SLIDINGWINDOW",
    "SESSIONWINDOW",
    "COUNTWINDOW",
    "STATEWINDOW",
)


class StreamWindowGrammar(_Base):
    """The grammar of the clauses of these windows: overrides of a sqlglot parser."""

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        if not isinstance(this, exp.Anonymous) or this.name.upper() not in STREAM_WINDOWS:
            return super()._parse_window(this, alias=alias)
        if self._match_pair(TokenType.FILTER, TokenType.L_PAREN):
            self._match(TokenType.WHERE)
            this.append("expressions", self._clause("FILTER"))
            self._match_r_paren()
        if self._match(TokenType.OVER):
            self._match_l_paren()
            if self._match(TokenType.WHEN):
                this.append("expressions", self._clause("WHEN"))
            if self._match(TokenType.PARTITION_BY):
                columns = self._parse_csv(self._parse_disjunction)
                this.append("expressions", keyword("PARTITION", exp.Tuple(expressions=columns)))
            self._match_r_paren()
        return this

    def _clause(self, name: str) -> exp.Expr:
        condition = self._parse_disjunction()
        if condition is None:
            self.raise_error("Expected a condition")
        return keyword(name, condition)
