"""Double quotes, in which other dialects put names, and some of them texts."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from service.sql.errors import SqlError

_LONGEST = 40
"""Characters between quotes that a hint repeats."""


def refuse_double_quotes(run: Sequence[Token], text: str) -> None:
    """Raise SqlError at the first double quote among the tokens of `text`: one inside other quotes is no token."""
    opening = next((token.start for token in run if is_double_quote(token)), None)
    if opening is not None:
        raise double_quote(text, opening)


def is_double_quote(token: Token) -> bool:
    """Return whether a token is a double quote by itself, and not a name or a text that consists of one."""
    return token.text == '"' and token.token_type not in (TokenType.IDENTIFIER, TokenType.STRING)


def double_quote(text: str, at: int) -> SqlError:
    """Return the mistake of a double quote at an offset of `text`."""
    quoted = _quoted(text[at + 1 :])
    return SqlError(
        "a double quote is not expected here",
        detail="names are quoted with backquotes, and texts with single quotes",
        hint=f"write `{quoted}` for a name, or '{quoted}' for a text" if quoted else "",
        at=at,
    )


def _quoted(rest: str) -> str:
    """What stands before the next double quote; nothing where that is long, or would itself end the other quotes."""
    inside, closing, _ = rest.partition('"')
    return inside if closing and len(inside) <= _LONGEST and not set(inside) & set("`'\n") else ""
