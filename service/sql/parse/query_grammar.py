"""Flink's additions to the grammar of queries: window table functions, hints after a table, NOT NULL inside types."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from service.sql.errors import SqlError
from service.sql.parse.data_types import MULTISET
from service.sql.parse.double_quotes import refuse_double_quotes

if TYPE_CHECKING:
    _Base = Parser
else:
    _Base = object

_VALUES = {(TokenType.ARRAY, TokenType.L_BRACKET), (TokenType.MAP, TokenType.L_BRACKET)}

UNKNOWN_TYPES = ("RAW", "VARIANT", "STRUCTURED", "BITMAP")
"""Types of Flink's that are not here."""

WINDOW_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")


def _multiset(element: exp.DataType) -> exp.DataType:
    """MULTISET<element>, as a MAP with a mark."""
    count = exp.DataType(this=exp.DType.INT)
    kind = exp.DataType(this=exp.DType.MAP, expressions=[element, count], nested=True)
    kind.meta[MULTISET] = True
    return kind


def refuse_type(token: Token | None) -> None:
    """Raise SqlError if the word that stands where a type is expected is a type of Flink's that is not here."""
    if token and token.token_type == TokenType.VAR and token.text.upper() in UNKNOWN_TYPES:
        raise SqlError(f"the type {token.text.upper()} is not supported", at=token.start)


def _hint_body(parser: Any) -> exp.Hint:
    return exp.Hint(expressions=parser._parse_csv(parser._parse_hint_call))


class QueryGrammar(_Base):
    """The grammar of queries: overrides of a sqlglot parser.

    A window table function becomes exp.Table(this=exp.Anonymous(TUMBLE, ...)); its table argument is an exp.Table or
    a query, DESCRIPTOR(ts) an exp.Anonymous, `NAME => value` an exp.Kwarg. Hints stand in the table's `hints`.
    """

    def _parse_table(
        self,
        schema: bool = False,
        joins: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
        parse_bracket: bool = False,
        is_db_reference: bool = False,
        parse_partition: bool = False,
        consume_pipe: bool = False,
    ) -> exp.Expr | None:
        wrapped = self._match_pair(TokenType.TABLE, TokenType.L_PAREN)
        if wrapped or self._at_window_function():
            call = self._parse_window_table_function()
            if wrapped:
                self._match_r_paren()
            table = self.expression(exp.Table(this=call))
            if alias := self._parse_table_alias(alias_tokens=alias_tokens or self.TABLE_ALIAS_TOKENS):
                table.set("alias", alias)
            if joins:
                for join in self._parse_joins(alias_tokens=alias_tokens):
                    table.append("joins", join)
            return table
        return super()._parse_table(
            schema=schema,
            joins=joins,
            alias_tokens=alias_tokens,
            parse_bracket=parse_bracket,
            is_db_reference=is_db_reference,
            parse_partition=parse_partition,
            consume_pipe=consume_pipe,
        )

    def _parse_select_query(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """A query; it starts with SELECT, WITH, VALUES or a parenthesis, and not with FROM as in DuckDB."""
        if self._match(TokenType.FROM, advance=False):
            return None
        return super()._parse_select_query(*args, **kwargs)

    def _at_window_function(self) -> bool:
        if not self._curr or not self._next or self._next.token_type != TokenType.L_PAREN:
            return False
        # Only table functions take arguments by name: unknown ones are recognized by their names.
        third = self._tokens[self._index + 3 : self._index + 4]
        named = bool(third) and third[0].token_type == TokenType.FARROW
        return named or self._curr.text.upper() in WINDOW_FUNCTIONS

    def _parse_window_table_function(self) -> exp.Expr:
        name = self._curr
        if not self._at_window_function():
            self.raise_error(f"Expected one of {', '.join(WINDOW_FUNCTIONS)}")
        self._advance(2)
        arguments = self._parse_csv(self._parse_window_argument)
        self._match_r_paren()
        return self.expression(exp.Anonymous(this=name.text, expressions=arguments), name)

    def _parse_window_argument(self) -> exp.Expr | None:
        if self._next and self._next.token_type == TokenType.FARROW:
            name = self._curr
            self._advance(2)
            value = self._parse_window_argument()
            return self.expression(exp.Kwarg(this=exp.var(name.text.upper()), expression=value), name)
        if self._match(TokenType.TABLE):
            argument = self._parse_wrapped_query() or self._parse_table_parts(schema=True)
        else:
            argument = self._parse_wrapped_query() or self._parse_disjunction()
        if isinstance(argument, exp.Table | exp.Subquery | exp.Column) and self._match(TokenType.PARTITION_BY):
            # Without parentheses it is one column: what follows the comma is the next argument.
            listed = self._match(TokenType.L_PAREN, advance=False)
            columns = self._parse_wrapped_csv(self._parse_column) if listed else [self._parse_column()]
            if not columns or not all(isinstance(column, exp.Column) for column in columns):
                self.raise_error("Expected a column, or several in parentheses")
            argument.set("partition", self.expression(exp.Tuple(expressions=columns)))
        return argument

    def _parse_wrapped_query(self) -> exp.Expr | None:
        """A query in parentheses; None, at the same place, for anything else in parentheses."""
        start = self._index
        if not self._match(TokenType.L_PAREN):
            return None
        query = self._parse_select()
        if query is None:
            self._retreat(start)
            return None
        self._match_r_paren()
        return self.expression(exp.Subquery(this=query))

    def _parse_table_parts(
        self,
        schema: bool = False,
        is_db_reference: bool = False,
        wildcard: bool = False,
        fast: bool = False,
    ) -> exp.Table | exp.Dot | None:
        table = super()._parse_table_parts(schema, is_db_reference, wildcard, fast)
        if table is not None and (hint := self._parse_hint()):
            table.meta["hints"] = [hint]
        return table

    def _parse_table_hints(self) -> list[exp.Expr] | None:
        return None

    def _parse_hint(self) -> exp.Hint | None:
        """A hint: its words are read where they stand, so that their places are those of the file."""
        if not self._match(TokenType.HINT):
            return None
        token = self._prev
        text = token.comments[0] if token.comments else ""
        shift = token.start + len("/*+")
        inner = self.dialect.tokenize(text)
        for part in inner:
            part.start, part.end = part.start + shift, part.end + shift
        refuse_double_quotes(inner, self.sql)
        reader = type(self)(dialect=self.dialect, error_level=self.error_level)
        calls = reader._parse(_hint_body, inner, self.sql)
        hint = calls[0] if calls else exp.Hint()
        assert isinstance(hint, exp.Hint)
        return hint.update_positions(token)

    def _parse_hint_call(self) -> exp.Expr | None:
        name = self._curr
        if not name or not self._next or self._next.token_type != TokenType.L_PAREN:
            self.raise_error("Expected a hint such as STATE_TTL('a' = '1d')")
        self._advance(2)
        arguments = self._parse_csv(self._parse_equality)
        self._match_r_paren()
        return self.expression(exp.Anonymous(this=name.text, expressions=arguments), name)

    def _parse_multiset(self) -> exp.DataType | None:
        """MULTISET<element>; None, at the same place, where the word is the name of a column."""
        start = self._index
        self._advance()
        if self._match(TokenType.LT):
            element = self._parse_types()
            if isinstance(element, exp.DataType) and self._match(TokenType.GT):
                return _multiset(element)
        self._retreat(start)
        return None

    def _parse_types(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """A type; one that is followed by NOT NULL, inside ARRAY< >, MAP< > or ROW< >, says so in its `nullable`."""
        if self._next and (self._curr.token_type, self._next.token_type) in _VALUES:
            # ARRAY[1] is a value. sqlglot would read its elements as types first, each level of nesting twice.
            return None
        first = self._curr
        if self._prev and self._prev.token_type == TokenType.ALIAS:
            refuse_type(first)
        multiset = self._parse_multiset() if first and first.text.upper() == "MULTISET" else None
        if multiset is not None:
            kind: exp.Expr | None = multiset
        elif first and first.token_type == TokenType.STRUCT:
            # ROW(...) may be a value. That it is no type is found once: sqlglot asks again at each level of nesting.
            known = self.__dict__.setdefault("_no_types", set())
            asked = (self._index, repr((args, sorted(kwargs.items()))))
            if asked in known:
                return None
            kind = super()._parse_types(*args, **kwargs)
            if kind is None:
                known.add(asked)
        else:
            kind = super()._parse_types(*args, **kwargs)
        while isinstance(kind, exp.DataType) and self._match_text_seq("MULTISET"):
            kind = _multiset(kind)
        if isinstance(kind, exp.DataType) and first and "start" not in kind.meta:
            kind.update_positions(first)
        if isinstance(kind, exp.DataType) and self._match_pair(TokenType.NOT, TokenType.NULL):
            kind.meta["not null"] = True
        return kind
