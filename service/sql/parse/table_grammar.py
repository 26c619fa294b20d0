"""The grammar of CREATE TABLE: columns of three kinds, WATERMARK, PRIMARY KEY, WITH."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import TokenType

from service.sql.errors import SqlError
from service.sql.parse.query_grammar import refuse_type
from service.sql.parse.statements import ColumnClause, CreateTable, KeyClause, LikeClause, Name, Option, WatermarkClause

FEATURES = ("ALL", "CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")
STRATEGIES = ("INCLUDING", "EXCLUDING", "OVERWRITING")


def create_table(parser: Parser, at: int) -> CreateTable:
    """Return what follows CREATE [TEMPORARY] TABLE."""
    if_not_exists = parser._match_text_seq("IF", "NOT", "EXISTS")
    name = table_name(parser)
    columns: list[ColumnClause] = []
    keys: list[KeyClause] = []
    watermarks: list[WatermarkClause] = []
    bare = parser._match_texts(("WITH", "LIKE", "AS"), advance=False)
    if not bare:
        _expect(parser, TokenType.L_PAREN, "(")
    while not bare:
        match _element(parser):
            case ColumnClause() as column:
                columns.append(column)
                if key := _inline_key(parser, column.name):
                    keys.append(key)
            case KeyClause() as key:
                keys.append(key)
            case WatermarkClause() as watermark:
                watermarks.append(watermark)
        _comment(parser)
        if not parser._match(TokenType.COMMA):
            break
    if not bare:
        _expect(parser, TokenType.R_PAREN, ")")
    _comment(parser)
    _layout(parser)
    options = with_clause(parser)
    like = _like(parser)
    query = None
    if parser._match(TokenType.ALIAS):
        query = parser._parse_statement()
        if not isinstance(query, exp.Query | exp.Values):
            parser.raise_error("Expected a query")
    return CreateTable(
        name=name,
        columns=tuple(columns),
        keys=tuple(keys),
        watermarks=tuple(watermarks),
        options=options,
        if_not_exists=if_not_exists,
        at=at,
        like=like,
        query=query,
    )


def _like(parser: Parser) -> LikeClause | None:
    """LIKE table [(EXCLUDING OPTIONS OVERWRITING WATERMARKS ...)]."""
    if not parser._match_text_seq("LIKE"):
        return None
    table = table_name(parser)
    strategies: list[tuple[str, str]] = []
    if parser._match(TokenType.L_PAREN):
        while parser._match_texts(STRATEGIES):
            strategy = parser._prev.text.upper()
            if not parser._match_texts(FEATURES):
                parser.raise_error(f"Expected one of {', '.join(FEATURES)}")
            strategies.append((parser._prev.text.upper(), strategy))
        _expect(parser, TokenType.R_PAREN, ")")
    return LikeClause(table, tuple(strategies))


def _element(parser: Parser) -> ColumnClause | KeyClause | WatermarkClause:
    if parser._match_text_seq("CONSTRAINT"):
        identifier(parser)
        return _key(parser)
    if parser._curr and parser._curr.token_type == TokenType.PRIMARY_KEY:
        return _key(parser)
    if _at_watermark(parser):
        return _watermark(parser)
    return _column(parser)


def _at_watermark(parser: Parser) -> bool:
    """WATERMARK FOR ts, or the older WATERMARK name FOR ts; a column may bear the name too."""
    curr, following = parser._curr, parser._next
    if not curr or curr.text.upper() != "WATERMARK" or curr.token_type == TokenType.IDENTIFIER or not following:
        return False
    after = parser._tokens[parser._index + 2] if parser._index + 2 < len(parser._tokens) else None
    return following.token_type == TokenType.FOR or bool(after and after.token_type == TokenType.FOR)


def _watermark(parser: Parser) -> WatermarkClause:
    at = parser._curr.start
    parser._advance()
    if not parser._match(TokenType.FOR):
        identifier(parser)
        _expect(parser, TokenType.FOR, "FOR")
    column = identifier(parser)
    while parser._match(TokenType.DOT):
        part = identifier(parser)
        column = Name(f"{column.text}.{part.text}", column.at)
    _expect(parser, TokenType.ALIAS, "AS")
    return WatermarkClause(column, expression(parser), at)


def _key(parser: Parser) -> KeyClause:
    at = parser._curr.start if parser._curr else 0
    _expect(parser, TokenType.PRIMARY_KEY, "PRIMARY KEY")
    return KeyClause(names(parser), not _not_enforced(parser), at)


def _inline_key(parser: Parser, column: Name) -> KeyClause | None:
    """`id BIGINT PRIMARY KEY NOT ENFORCED`."""
    if not parser._match(TokenType.PRIMARY_KEY):
        return None
    at = parser._prev.start
    return KeyClause((column,), not _not_enforced(parser), at)


def _not_enforced(parser: Parser) -> bool:
    if parser._match_text_seq("ENFORCED"):
        return False
    return parser._match_text_seq("NOT", "ENFORCED")


def _column(parser: Parser) -> ColumnClause:
    name = identifier(parser)
    if parser._match(TokenType.ALIAS):
        return ColumnClause(name=name, expression=expression(parser))
    refuse_type(parser._curr)
    kind = parser._parse_types()
    if not isinstance(kind, exp.DataType):
        parser.raise_error("Expected a type")
        raise AssertionError
    metadata: str | None = None
    metadata_at = name.at
    nullable = not kind.meta.get("not null", False)
    while True:
        if parser._match_text_seq("METADATA"):
            metadata = name.text
            if parser._match(TokenType.FROM):
                metadata, metadata_at = string(parser)
        elif parser._match_pair(TokenType.NOT, TokenType.NULL):
            nullable = False
        elif not parser._match(TokenType.NULL):
            break
    virtual = parser._match_text_seq("VIRTUAL")
    return ColumnClause(
        name=name, type=kind, metadata=metadata, metadata_at=metadata_at, virtual=virtual, nullable=nullable
    )


def _comment(parser: Parser) -> None:
    if parser._match_text_seq("COMMENT"):
        string(parser)


def _layout(parser: Parser) -> None:
    """PARTITIONED BY and DISTRIBUTED BY, which have no meaning for a topic: a mistake that says so."""
    if parser._match(TokenType.PARTITION_BY) or parser._match_text_seq("DISTRIBUTED"):
        words = parser._prev.text.upper()
        raise SqlError(
            f"{words if ' ' in words else words + ' BY'} has no meaning for a topic",
            detail="the rows of a key are written to one partition",
            hint="leave the clause out",
            at=parser._prev.start,
        )


def with_clause(parser: Parser) -> tuple[Option, ...]:
    """Return the options of WITH ('key' = 'value', ...), none where it does not stand."""
    if not parser._match(TokenType.WITH):
        return ()
    _expect(parser, TokenType.L_PAREN, "(")
    options = []
    while parser._curr and parser._curr.token_type != TokenType.R_PAREN:
        options.append(option(parser))
        if not parser._match(TokenType.COMMA):
            break
    _expect(parser, TokenType.R_PAREN, ")")
    return tuple(options)


def option(parser: Parser) -> Option:
    """Return the option 'key' = 'value'."""
    key, key_at = string(parser)
    _expect(parser, TokenType.EQ, "=")
    value, value_at = string(parser)
    return Option(key, value, key_at, value_at)


def table_name(parser: Parser) -> Name:
    """Return a table's name; Flink's default catalog and database may stand before it."""
    parts = [identifier(parser)]
    while parser._match(TokenType.DOT):
        parts.append(identifier(parser))
    return Name(local_name([p.text for p in parts]), parts[0].at)


def local_name(parts: list[str]) -> str:
    """Return `parts` without Flink's default catalog and database."""
    for prefix in (["default_catalog", "default_database"], ["default_database"]):
        if parts[:-1] == prefix:
            return parts[-1]
    return ".".join(parts)


def names(parser: Parser) -> tuple[Name, ...]:
    """Return the names of (a, b, ...)."""
    _expect(parser, TokenType.L_PAREN, "(")
    found = [identifier(parser)]
    while parser._match(TokenType.COMMA):
        found.append(identifier(parser))
    _expect(parser, TokenType.R_PAREN, ")")
    return tuple(found)


def identifier(parser: Parser) -> Name:
    """Return one name; any word will do, since a column may be called `value` or `timestamp`."""
    token = parser._curr
    if not token or not (token.token_type == TokenType.IDENTIFIER or token.text.replace("_", "a").isalnum()):
        parser.raise_error("Expected a name")
    parser._advance()
    return Name(token.text, token.start)


def string(parser: Parser) -> tuple[str, int]:
    """Return the text of a string literal and its offset."""
    token = parser._curr
    if not parser._match(TokenType.STRING):
        parser.raise_error("Expected a text in single quotes")
    return token.text, token.start


def expression(parser: Parser) -> exp.Expr:
    """Return a scalar expression."""
    found = parser._parse_disjunction()
    if found is None:
        parser.raise_error("Expected an expression")
        raise AssertionError
    return found


def _expect(parser: Parser, kind: TokenType, text: str) -> None:
    if not parser._match(kind):
        parser.raise_error(f"Expected {text}")
