"""The parsing of function calls: every call becomes exp.Anonymous, so that only our own table gives it a meaning.

sqlglot knows hundreds of functions of other dialects and rewrites them (LOCATE swaps its arguments, IFNULL becomes
COALESCE); here a call keeps its name and its arguments as they were written. The forms with words of their own are
brought to the same shape: TRIM(BOTH a FROM b) is TRIM with a keyword argument, JSON_VALUE(... NULL ON ERROR) has a
keyword argument for each clause. A keyword argument is exp.Kwarg(this=exp.Var, expression=value).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import TokenType

if TYPE_CHECKING:
    _Base = Parser
else:
    _Base = object

TYPED_LITERAL = " LITERAL"
"""DATE '2020-01-01' becomes a call of "DATE LITERAL"; no name that a user can call ends like this."""

_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)
_JSON_BEHAVIOURS = ("NULL", "ERROR", "TRUE", "FALSE", "UNKNOWN", "EMPTY ARRAY", "EMPTY OBJECT")
_WRAPPERS = (
    ("WITHOUT ARRAY WRAPPER", "WITHOUT"),
    ("WITHOUT WRAPPER", "WITHOUT"),
    ("WITH CONDITIONAL ARRAY WRAPPER", "CONDITIONAL"),
    ("WITH CONDITIONAL WRAPPER", "CONDITIONAL"),
    ("WITH UNCONDITIONAL ARRAY WRAPPER", "UNCONDITIONAL"),
    ("WITH UNCONDITIONAL WRAPPER", "UNCONDITIONAL"),
    ("WITH ARRAY WRAPPER", "UNCONDITIONAL"),
    ("WITH WRAPPER", "UNCONDITIONAL"),
)


def keyword(name: str, value: exp.Expr | None) -> exp.Expr:
    """Return a keyword argument of a call."""
    return exp.Kwarg(this=exp.var(name), expression=value)


def _call(parser: Parser, arguments: Sequence[exp.Expr | None]) -> exp.Expr:
    if None in arguments:
        parser.raise_error("Expected an argument")
    return parser.expression(exp.Anonymous(this="", expressions=list(arguments)))


def _trim(parser: Parser) -> exp.Expr:
    side = parser._prev.text.upper() if parser._match_texts(("BOTH", "LEADING", "TRAILING")) else ""
    if side and parser._match(TokenType.FROM):
        return _call(parser, [parser._parse_bitwise(), keyword("SIDE", exp.var(side))])
    first = parser._parse_bitwise()
    if parser._match(TokenType.FROM):
        return _call(parser, [parser._parse_bitwise(), first, keyword("SIDE", exp.var(side or "BOTH"))])
    rest = parser._parse_csv(parser._parse_bitwise) if parser._match(TokenType.COMMA) else []
    return _call(parser, [first, *rest])


def _words_between(*words: str) -> Callable[[Parser], exp.Expr]:
    """A call whose arguments are parted by `words`, or as well by commas: OVERLAY(a PLACING b FROM c FOR d)."""

    def parse(parser: Parser) -> exp.Expr:
        arguments: list[exp.Expr | None] = [parser._parse_bitwise()]
        for word in words:
            if parser._match(TokenType.COMMA) or parser._match_text_seq(word):
                arguments.append(parser._parse_bitwise())
        while parser._match(TokenType.COMMA):
            arguments.append(parser._parse_bitwise())
        return _call(parser, arguments)

    return parse


def _unit(parser: Parser) -> exp.Expr | None:
    """A unit of time, with its place."""
    token = parser._curr
    unit = parser._parse_var(any_token=True, upper=True)
    return unit.update_positions(token) if unit is not None else None


def _extract(parser: Parser) -> exp.Expr:
    unit = _unit(parser)
    if not parser._match(TokenType.FROM):
        parser.raise_error("Expected FROM after the unit of EXTRACT")
    return _call(parser, [unit, parser._parse_bitwise()])


def _to_unit(parser: Parser) -> exp.Expr:
    arguments: list[exp.Expr | None] = list(parser._parse_csv(parser._parse_bitwise))
    if parser._match_text_seq("TO"):
        arguments.append(_unit(parser))
    return _call(parser, arguments)


def _unit_first(parser: Parser) -> exp.Expr:
    """TIMESTAMPADD(SECOND, 1, ts): a word before the first comma is a unit, and no column."""
    arguments: list[exp.Expr | None] = []
    word, after = parser._curr, parser._next
    bare = word is not None and word.text.isidentifier() and word.token_type not in _QUOTED
    if bare and after is not None and after.token_type == TokenType.COMMA:
        arguments.append(_unit(parser))
        parser._match(TokenType.COMMA)
    return _call(parser, [*arguments, *parser._parse_csv(parser._parse_bitwise)])


def _behaviours(parser: Parser) -> list[exp.Expr | None]:
    """Any number of `<behaviour> ON EMPTY` and `<behaviour> ON ERROR`."""
    clauses: list[exp.Expr | None] = []
    while True:
        value: exp.Expr | None = None
        if parser._match(TokenType.DEFAULT):
            value = parser._parse_bitwise()
        else:
            name = next((b for b in _JSON_BEHAVIOURS if parser._match_text_seq(*b.split())), None)
            value = exp.var(name) if name else None
        if value is None:
            return clauses
        if not (parser._match(TokenType.ON) and parser._match_texts(("EMPTY", "ERROR"))):
            parser.raise_error("Expected ON EMPTY or ON ERROR")
        clauses.append(keyword(f"ON {parser._prev.text.upper()}", value))


def _json_path(parser: Parser) -> exp.Expr:
    arguments = [parser._parse_bitwise()]
    if parser._match(TokenType.COMMA):
        arguments.append(parser._parse_bitwise())
    if parser._match(TokenType.RETURNING):
        type_ = parser._parse_types()
        if type_ is None:
            parser.raise_error("Expected a type after RETURNING")
        arguments.append(keyword("RETURNING", type_))
    for words, name in _WRAPPERS:
        if parser._match_text_seq(*words.split()):
            arguments.append(keyword("WRAPPER", exp.var(name)))
            break
    return _call(parser, [*arguments, *_behaviours(parser)])


def _on_null(parser: Parser) -> list[exp.Expr | None]:
    for word in ("NULL", "ABSENT"):
        if parser._match_text_seq(word, "ON", "NULL"):
            return [keyword("ON NULL", exp.var(word))]
    return []


def _json_object(parser: Parser) -> exp.Expr:
    arguments: list[exp.Expr | None] = []
    while parser._curr and parser._curr.token_type != TokenType.R_PAREN:
        clause = _on_null(parser)
        if clause:
            arguments += clause
            break
        marked = parser._match_text_seq("KEY")
        arguments.append(parser._parse_bitwise())
        if not (parser._match_text_seq("VALUE") or parser._match(TokenType.COLON)):
            parser.raise_error("Expected VALUE after KEY" if marked else "Expected KEY ... VALUE ...")
        arguments.append(parser._parse_bitwise())
        if not parser._match(TokenType.COMMA):
            arguments += _on_null(parser)
            break
    return _call(parser, arguments)


def _json_array(parser: Parser) -> exp.Expr:
    clause = _on_null(parser)
    if clause or not parser._curr or parser._curr.token_type == TokenType.R_PAREN:
        return _call(parser, clause)
    return _call(parser, [*parser._parse_csv(parser._parse_bitwise), *_on_null(parser)])


def _named(parse: Callable[[Parser], exp.Expr]) -> Callable[[Parser], exp.Expr]:
    """`parse`, with the name and the place of the call, which stand two tokens before its first argument."""

    def run(parser: Parser) -> exp.Expr:
        token = parser._tokens[parser._index - 2]
        node = parse(parser)
        node.set("this", token.text)
        return node.update_positions(token)

    return run


def _cast(strict: bool) -> Callable[[Parser], exp.Expr]:
    def parse(parser: Parser) -> exp.Expr:
        token = parser._tokens[parser._index - 2]
        return parser._parse_cast(strict, safe=None if strict else True).update_positions(token)

    return parse


def _typed_literal(name: str) -> Callable[[Parser, exp.Expr, exp.DataType], exp.Expr]:
    def parse(parser: Parser, literal: exp.Expr, to: exp.DataType) -> exp.Expr:
        call = parser.expression(exp.Anonymous(this=name + TYPED_LITERAL, expressions=[literal]))
        return call.update_positions(literal)

    return parse


class CallGrammar(_Base):
    """The grammar of calls, which arrive as they were written: overrides of a sqlglot parser."""

    def _parse_placeholder(self) -> exp.Expr | None:
        """?, :name and @name, which are read so that their mistake has a place."""
        start = self._curr.start if self._curr else 0
        found = super()._parse_placeholder()
        if found is not None:
            found.meta["start"] = start
        return found

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        index = self._index
        negate = self._match(TokenType.NOT)
        if not self._match_text_seq("JSON"):
            self._retreat(index)
            return super()._parse_is(this)
        kind = self._prev.text.upper() if self._match_texts(("VALUE", "OBJECT", "ARRAY", "SCALAR")) else None
        found = self.expression(exp.Is(this=this, expression=self.expression(exp.JSON(this=kind))))
        return self.expression(exp.Not(this=found)) if negate else found

    def _parse_case(self) -> exp.Expr | None:
        """CASE [value] WHEN ... THEN ... [ELSE ...] END; `WHEN a, b` of a value is a tuple of `values`."""
        value = self._parse_disjunction()
        branches: list[exp.Expr] = []
        while self._match(TokenType.WHEN):
            found = self._parse_csv(self._parse_disjunction) if value else [self._parse_disjunction()]
            condition = found[0] if len(found) == 1 else self.expression(exp.Tuple(expressions=found))
            if condition is not None and len(found) > 1:
                condition.meta["values"] = True
            if not self._match(TokenType.THEN):
                self.raise_error("Expected THEN")
            branches.append(self.expression(exp.If(this=condition, true=self._parse_disjunction())))
        default = self._parse_disjunction() if self._match(TokenType.ELSE) else None
        if not self._match(TokenType.END):
            self.raise_error("Expected END after CASE")
        return self.expression(exp.Case(this=value, ifs=branches, default=default))

    def _parse_range(self, this: exp.Expr | None = None, parse_is: bool = False) -> exp.Expr | None:
        """What follows a value; (start, end) OVERLAPS (start, end) becomes a call."""
        left = super()._parse_range(this, parse_is)
        word = self._curr
        if not isinstance(left, exp.Tuple) or not self._match_text_seq("OVERLAPS"):
            return left
        right = self._parse_bitwise()
        if not isinstance(right, exp.Tuple) or len(left.expressions) != 2 or len(right.expressions) != 2:
            self.raise_error("Expected (start, end) OVERLAPS (start, end)")
        periods = [*left.expressions, *(right.expressions if isinstance(right, exp.Tuple) else ())]
        return self.expression(exp.Anonymous(this="OVERLAPS", expressions=periods), word)

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CASE": lambda parser: parser._parse_case(),
    }
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CAST": _cast(strict=True),
        "TRY_CAST": _cast(strict=False),
        "TRIM": _named(_trim),
        "OVERLAY": _named(_words_between("PLACING", "FROM", "FOR")),
        "SUBSTRING": _named(_words_between("FROM", "FOR")),
        "POSITION": _named(_words_between("IN", "FROM")),
        "EXTRACT": _named(_extract),
        "TIMESTAMPADD": _named(_unit_first),
        "TIMESTAMPDIFF": _named(_unit_first),
        "FLOOR": _named(_to_unit),
        "CEIL": _named(_to_unit),
        "CEILING": _named(_to_unit),
        "JSON_VALUE": _named(_json_path),
        "JSON_QUERY": _named(_json_path),
        "JSON_EXISTS": _named(_json_path),
        "JSON_OBJECT": _named(_json_object),
        "JSON_OBJECTAGG": _named(_json_object),
        "JSON_ARRAY": _named(_json_array),
        "JSON_ARRAYAGG": _named(_json_array),
    }
    TYPE_LITERAL_PARSERS: ClassVar[dict[exp.DType, Callable[..., Any]]] = {
        exp.DType.DATE: _typed_literal("DATE"),
        exp.DType.TIME: _typed_literal("TIME"),
        exp.DType.TIMESTAMP: _typed_literal("TIMESTAMP"),
    }
