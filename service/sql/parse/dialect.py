"""Flink SQL for sqlglot: how text becomes tokens, and which parser reads them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from sqlglot import parser, tokens
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from service.sql.errors import SqlError
from service.sql.parse.call_grammar import CallGrammar
from service.sql.parse.double_quotes import double_quote
from service.sql.parse.query_grammar import QueryGrammar
from service.sql.parse.stream_window_grammar import StreamWindowGrammar

T = TypeVar("T")
Tokens = Sequence[Token]

# Words and signs of other dialects: here they are plain names, or mistakes.
_FOREIGN = {
    *("{%", "{%+", "{%-", "%}", "+%}", "-%}", "{{", "{{+", "{{-", "}}", "+}}", "-}}"),
    *("&<", "&>", "==", "::", "?::", "|>", ":=", "<=>", "->", "->>", "#>", "#>>", "<->", "<<->>", "&&", "??"),
    *("~~~", "~~", "~~*", "~*", "-|-"),
    *("ASOF", "AUTOINCREMENT", "AUTO_INCREMENT", "CACHE", "UNCACHE", "CLUSTER BY", "COLLATE", "COMMENT", "COPY"),
    *("DISTRIBUTE BY", "SORT BY", "CONNECT BY", "DIV", "ENUM", "FILE", "GLOB", "ILIKE", "INDEX", "ISNULL", "KEEP"),
    *("KILL", "LOAD", "LOCK", "NAMESPACE", "NOTNULL", "OBJECT", "REF", "OPERATOR", "PERCENT", "PIVOT", "UNPIVOT"),
    *("PRAGMA", "REGEXP", "RENAME", "REPLACE", "REFERENCES", "RLIKE", "SETTINGS", "STRAIGHT_JOIN"),
    *("SQL SECURITY", "TEMP", "TRIGGER", "UUID", "XOR", "COMMIT", "ROLLBACK", "MERGE", "SHOW", "EXPLAIN"),
    *("ANALYZE", "CALL", "GRANT", "REVOKE", "OPTIMIZE", "PREPARE", "VACUUM", "USER-DEFINED", "CURRENT_SCHEMA"),
    *("CURRENT_CATALOG", "CURRENT_USER", "SESSION_USER", "OUT", "EXECUTE", "TRUNCATE", "DESCRIBE", "USE"),
    *("INT128", "INT256", "INT96", "UINT", "UINT128", "UINT256", "HUGEINT", "UHUGEINT", "MONEY", "SMALLMONEY"),
    *("INET", "GEOGRAPHY", "GEOMETRY", "SUPER", "VARIANT", "XML", "HSTORE", "ROWVERSION", "BIT", "OVERLAPS"),
    *("SEQUENCE", "SESSION", "STAGE", "WAREHOUSE", "STREAMLIT", "STORAGE INTEGRATION", "TAG", "PROCEDURE", "FUNCTION"),
    *("VECTOR", "TEXT", "JSON", "JSONB", "IMAGE", "NAME", "OVERWRITE", "SCHEMA", "DATABASE", "CONSTRAINT"),
}


class FlinkTokenizer(tokens.Tokenizer):
    """Strings in single quotes, names in backquotes; hints may follow SELECT and the name of a table."""

    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`"]
    QUOTES: ClassVar[list[tuple[str, str] | str]] = ["'"]
    STRING_ESCAPES: ClassVar[list[str]] = ["'"]
    IDENTIFIER_ESCAPES: ClassVar[list[str]] = ["`"]
    HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("x'", "'"), ("X'", "'")]
    UNICODE_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("U&'", "'"), ("u&'", "'")]
    COMMANDS: ClassVar[set[TokenType]] = set()
    TOKENS_PRECEDING_HINT: ClassVar[set[TokenType]] = {
        TokenType.SELECT,
        TokenType.VAR,
        TokenType.IDENTIFIER,
        TokenType.R_PAREN,
    }
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        **{word: kind for word, kind in tokens.Tokenizer.KEYWORDS.items() if word not in _FOREIGN},
        "BYTES": TokenType.VARBINARY,
        "ROW": TokenType.STRUCT,
        "STRING": TokenType.TEXT,
        "TIMESTAMP_LTZ": TokenType.TIMESTAMPLTZ,
    }


class FlinkParser(StreamWindowGrammar, CallGrammar, QueryGrammar, parser.Parser):
    """sqlglot's parser of queries and expressions, with Flink's forms."""


class Flink(Dialect):
    """Flink SQL: names keep their case, arrays count from one."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE
    SUPPORTS_USER_DEFINED_TYPES = False
    Tokenizer = FlinkTokenizer
    Parser = FlinkParser


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a whole file. Raises SqlError where a string or a name does not end.

    sqlglot takes the sign in 1e0+1 into the number, so such a number is set apart by a blank, which the places of the
    tokens do not show.
    """
    parted = [m.end() for m in _QUOTATION_OR_NUMBER.finditer(text) if m["number"]]
    pieces = [text[start:end] for start, end in zip((0, *parted), (*parted, len(text)), strict=True)]
    try:
        tokens = Flink().tokenize(" ".join(pieces))
    except TokenError as error:
        raise _unclosed(text) from error
    if parted:
        blanks = [end + i for i, end in enumerate(parted)]
        for token in tokens:
            token.start -= bisect_left(blanks, token.start)
            token.end -= bisect_left(blanks, token.end)
    return tokens


def parse_tokens(run: Tokens, text: str, method: Callable[[Any], T]) -> T:
    """Return what `method` reads from the tokens of one statement, all of which it must use up. Raises SqlError at the
    first token that cannot be read."""
    reader: Any = FlinkParser(dialect=Flink(), error_level=ErrorLevel.IMMEDIATE)
    try:
        results: list[T] = reader._parse(method, list(run), text)
    except ParseError as error:
        raise _syntax_error(error, reader, run) from error
    if not results:
        # sqlglot ends a batch at ELSE and END, wherever it stands.
        raise SqlError(f'"{run[0].text}" is not expected here', at=run[0].start)
    return results[0]


def _syntax_error(error: ParseError, reader: parser.Parser, run: Tokens) -> SqlError:
    message = str(error.errors[0]["description"]) if error.errors else str(error)
    stopped = reader._curr or None
    at = stopped.start if stopped else run[-1].end
    if planned := _planned(run, at):
        hint = "SET 'table.exec.emit.early-fire.enabled' = 'true'" if planned.text.upper() == "EMIT" else ""
        return SqlError(f"{planned.text.upper()} is not supported yet", hint=hint, at=planned.start)
    found = f'"{stopped.text}"' if stopped else "the end of the statement"
    if message.startswith(("Invalid expression", "Required", "Expected table name")):
        return SqlError(f"{found} is not expected here", at=at)
    return SqlError(f"{found} is not expected here", detail=message[:1].lower() + message[1:], at=at)


def _planned(run: Tokens, at: int) -> Token | None:
    """The word of a clause that is no keyword here yet, if reading stopped at it, or inside its parentheses."""
    words = [t for t in run if t.start <= at and t.token_type == TokenType.VAR]
    if words and words[-1].start == at and words[-1].text.upper() == "EMIT":
        return words[-1]
    return next((t for t in reversed(words) if t.text.upper() == "MATCH_RECOGNIZE"), None)


# A quotation or comment as a whole, or the start of one that has no end; no quotation starts with a double quote.
_QUOTED = r"'(?:[^']|'')*'|`[^`]*`|--[^\n]*|/\*.*?\*/"
_QUOTATION = re.compile(rf"{_QUOTED}|(?P<open>['\"`]|/\*)", re.DOTALL)

# A number whose exponent has digits but no sign, right before a sign; a hint is SQL, too.
_QUOTATION_OR_NUMBER = re.compile(
    r"'(?:[^']|'')*'|`[^`]*`|--[^\n]*|/\*(?!\+).*?\*/|(?<![\w.$])(?P<number>(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+)(?=[+-])",
    re.DOTALL,
)


def _unclosed(text: str) -> SqlError:
    """The mistake of a quotation or comment that runs to the end of `text`, or of a double quote before it, between
    which and the next one there may be an apostrophe."""
    at = next((m.start() for m in _QUOTATION.finditer(text) if m["open"]), len(text))
    if text[at : at + 1] == '"':
        return double_quote(text, at)
    return SqlError("a quotation or a comment does not end", at=at)
