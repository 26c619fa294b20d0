"""The grammar of statements: from the text of a file to its statements, and all that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from service.sql.errors import Mistakes, SqlError, did_you_mean
from service.sql.parse.catalog_grammar import check_session, create_catalog, drop, show, use
from service.sql.parse.dialect import parse_tokens, tokenize
from service.sql.parse.double_quotes import is_double_quote, refuse_double_quotes
from service.sql.parse.nesting import check_nesting
from service.sql.parse.statements import (
    CreateTemporalFunction,
    CreateView,
    Explain,
    Insert,
    Name,
    Option,
    Reset,
    SetOption,
    Statement,
    StatementSet,
    Unread,
)
from service.sql.parse.table_grammar import create_table, identifier, local_name, names, option, string, table_name

_BRACKETS = {
    "BEGIN": "write BEGIN STATEMENT SET;",
    "END": "it ends a statement set, and none is open: leave it out, or write BEGIN STATEMENT SET; before the INSERTs",
}
"""Words around a statement set, where they stand alone."""

_KNOWN = ("CREATE", "INSERT", "EXECUTE", "BEGIN", "SET", "RESET", "EXPLAIN", "SELECT", "END", "DROP", "USE", "SHOW")
_CHANGING_ROWS = ("DELETE", "UPDATE", "MERGE", "UPSERT", "REPLACE", "TRUNCATE")
"""Words of statements that change the rows of a table in place."""

_SETTING = ("SET", "RESET")
_EXPLAIN_DETAILS = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")


def read_statements(mistakes: Mistakes) -> list[Statement]:
    """Return the statements of a file. One that cannot be read is a mistake, and the rest are read all the same."""
    text = mistakes.source.text
    statements: list[Statement] = []
    try:
        runs = list(_split(tokenize(text)))
    except SqlError as error:
        mistakes.add_error(error)
        return statements
    pending = _PendingSet()
    for run in runs:
        try:
            statement = _statement(run, text, pending)
        except SqlError as error:
            mistakes.add_error(error, run[0].start)
            if (name := _declared(run)) is not None or _may_set(run[0].text.upper()):
                statements.append(Unread(name, run[0].start))
            continue
        if statement is not None:
            statements.append(statement)
    if pending.open:
        mistakes.add("the statement set has no END", hint="close it with END;", at=pending.at)
    return statements


def _split(tokens: list[Token]) -> Iterator[list[Token]]:
    run: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            run.append(token)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _declared(run: list[Token]) -> Name | None:
    """The name that a CREATE TABLE or VIEW declares."""
    words = [t.text.upper() for t in run[:7]]
    if words[:1] != ["CREATE"] or not {"TABLE", "VIEW"} & set(words[1:5]) or "FUNCTION" in words[1:5]:
        return None
    at = next(i for i, word in enumerate(words) if word in ("TABLE", "VIEW")) + 1
    at += 3 if words[at : at + 3] == ["IF", "NOT", "EXISTS"] else 0
    at += at < len(run) and is_double_quote(run[at])
    parts = [run[i] for i in range(at, min(at + 5, len(run)), 2)]
    count = 1
    while count < len(parts) and run[at + 2 * count - 1].token_type == TokenType.DOT:
        count += 1
    return Name(local_name([t.text for t in parts[:count]]), run[at].start) if parts else None


def _may_set(word: str) -> bool:
    """Whether a statement that starts with `word` sets something, or would if the word were spelt right."""
    return word in _SETTING or (word not in _KNOWN and bool(did_you_mean(word, _SETTING)))


class _PendingSet:
    """The statement set that is being read, between its BEGIN and its END."""

    def __init__(self) -> None:
        self.open = False
        self.explain = False
        self.at = 0
        self.inserts: list[Insert] = []

    def begin(self, at: int, explain: bool) -> None:
        self.open, self.explain, self.at, self.inserts = True, explain, at, []

    def end(self) -> Statement:
        self.open = False
        done = StatementSet(tuple(self.inserts), self.at)
        return Explain(done, self.at) if self.explain else done


def _statement(run: list[Token], text: str, pending: _PendingSet) -> Statement | None:
    refuse_double_quotes(run, text)
    check_nesting(run)
    begun = _set_begins(run)
    if begun:
        pending.begin(run[0].start, run[0].text.upper() == "EXPLAIN")
        run = run[begun:]
        if not run:
            return None
    if pending.open:
        if [t.text.upper() for t in run] == ["END"]:
            return pending.end()
        found = parse_tokens(run, text, _any_statement)
        if not isinstance(found, Insert):
            raise SqlError("a statement set holds INSERT statements only", at=run[0].start)
        pending.inserts.append(found)
        return None
    return parse_tokens(run, text, _any_statement)


def _set_begins(run: list[Token]) -> int:
    """How many tokens open a statement set: EXECUTE STATEMENT SET BEGIN, or BEGIN STATEMENT SET."""
    words = [t.text.upper() for t in run[:5]]
    for opening in (
        ["EXECUTE", "STATEMENT", "SET", "BEGIN"],
        ["EXPLAIN", "STATEMENT", "SET", "BEGIN"],
        ["EXPLAIN", "PLAN", "FOR", "STATEMENT", "SET", "BEGIN"],
        ["BEGIN", "STATEMENT", "SET"],
    ):
        if words[: len(opening)] == opening[:5] and len(run) >= len(opening):
            return len(opening)
    return 0


def _any_statement(parser: Parser) -> Statement:
    start = parser._curr
    word = start.text.upper()
    if parser._match_text_seq("CREATE"):
        return _create(parser, start)
    if parser._match_text_seq("DROP"):
        return drop(parser, start.start)
    if parser._match_text_seq("USE"):
        return use(parser, start.start)
    if parser._match_texts(("SHOW", "DESCRIBE", "DESC")):
        return show(parser, start.start)
    if parser._match_text_seq("EXECUTE"):
        if not parser._match_text_seq("INSERT", advance=False):
            parser.raise_error("Expected STATEMENT SET BEGIN or INSERT")
        return _insert(parser)
    if parser._match_text_seq("INSERT", advance=False):
        return _insert(parser)
    if parser._match_text_seq("SET"):
        return _set(parser, start.start)
    if parser._match_text_seq("RESET"):
        key = Name(*string(parser)) if parser._curr else None
        return Reset(key, start.start)
    if parser._match_text_seq("EXPLAIN"):
        return _explain(parser, start.start)
    if word in ("SELECT", "WITH", "VALUES"):
        raise SqlError(
            "a query by itself has no sink",
            hint="write INSERT INTO <table> SELECT ..., or EXPLAIN SELECT ...",
            at=start.start,
        )
    if word in _CHANGING_ROWS:
        raise SqlError(
            f"{word} is not supported",
            detail="rows of a topic cannot be changed by a statement: a pipeline has only INSERT INTO",
            hint="write INSERT INTO <table> SELECT ..., which writes an update or a delete where the rows that it reads"
            " change",
            at=start.start,
        )
    check_session((word, parser._next.text.upper() if parser._next else ""), start.start)
    raise SqlError(
        f'a statement cannot start with "{start.text}"',
        detail="a pipeline holds CREATE TABLE, CREATE VIEW, INSERT INTO, EXECUTE STATEMENT SET, SET, RESET, EXPLAIN,"
        " DROP, USE and SHOW",
        hint=_BRACKETS.get(word) or did_you_mean(word, _KNOWN),
        at=start.start,
    )


def _create(parser: Parser, start: Token) -> Statement:
    temporary = parser._match_text_seq("TEMPORARY")
    if temporary and parser._match_text_seq("TABLE", "FUNCTION"):
        return _create_temporal_function(parser, start.start)
    if parser._match_text_seq("TABLE"):
        return create_table(parser, start.start)
    if parser._match_text_seq("VIEW"):
        return _create_view(parser, start.start)
    kind = parser._curr.text if parser._curr else ""
    if kind.upper() == "OR":
        raise SqlError(
            "CREATE OR REPLACE is not supported",
            detail="a file declares each table once",
            hint="write CREATE TABLE, after DROP TABLE IF EXISTS if the name may be taken",
            at=start.start,
        )
    if kind.upper() == "MATERIALIZED":
        raise SqlError(
            "CREATE MATERIALIZED TABLE is not supported",
            hint="write CREATE TABLE ... WITH (...) AS SELECT ..., which is kept up to date",
            at=start.start,
        )
    if "FUNCTION" in (kind.upper(), parser._next.text.upper() if parser._next else ""):
        raise SqlError(
            "CREATE FUNCTION is not supported",
            detail="there are no user-defined functions",
            hint="put the functions that there are together, in a view for example (docs/functions.md lists them)",
            at=start.start,
        )
    if kind.upper() in ("CATALOG", "DATABASE"):
        return create_catalog(parser, start.start)
    raise SqlError(
        f"CREATE {'TEMPORARY ' if temporary else ''}{kind} is not supported",
        hint="write CREATE TABLE or CREATE VIEW",
        at=start.start,
    )


def _create_temporal_function(parser: Parser, at: int) -> CreateTemporalFunction:
    if_not_exists = parser._match_text_seq("IF", "NOT", "EXISTS")
    name = table_name(parser)
    if not parser._match(TokenType.ALIAS):
        parser.raise_error("Expected AS <table>")
    table = table_name(parser)
    if not parser._match(TokenType.PRIMARY_KEY):
        parser.raise_error("Expected PRIMARY KEY (<columns>)")
    key = names(parser)
    if not parser._match_text_seq("TIME", "ATTRIBUTE"):
        parser.raise_error("Expected TIME ATTRIBUTE (<column>)")
    time = names(parser)
    if len(time) != 1:
        parser.raise_error("Expected one column as TIME ATTRIBUTE")
    return CreateTemporalFunction(
        name=name, table=table, key=key, time=time[0], if_not_exists=bool(if_not_exists), at=at
    )


def _create_view(parser: Parser, at: int) -> CreateView:
    if_not_exists = parser._match_text_seq("IF", "NOT", "EXISTS")
    name = table_name(parser)
    columns = _view_columns(parser) if parser._match(TokenType.L_PAREN) else ()
    if parser._match_text_seq("COMMENT"):
        string(parser)
    if not parser._match(TokenType.ALIAS):
        parser.raise_error("Expected AS")
    return CreateView(name=name, columns=columns, query=_query(parser), if_not_exists=if_not_exists, at=at)


def _view_columns(parser: Parser) -> tuple[Name, ...]:
    """The columns of a view, each with its comment if it has one."""
    found: list[Name] = []
    while True:
        found.append(identifier(parser))
        if parser._match_text_seq("COMMENT"):
            string(parser)
        if not parser._match(TokenType.COMMA):
            break
    parser._match_r_paren()
    return tuple(found)


def _insert(parser: Parser) -> Insert:
    at = parser._curr.start
    parser._advance()
    if parser._match_text_seq("OVERWRITE"):
        parser._advance(-1)
        parser.raise_error("A topic cannot be overwritten; write INSERT INTO")
    if not parser._match_text_seq("INTO"):
        parser.raise_error("Expected INTO")
    table = table_name(parser)
    options = hint_options(parser._parse_hint())
    if parser._match_text_seq("PARTITION"):
        at_partition, after = parser._prev.start, parser._tokens[parser._index + 2 : parser._index + 3]
        valued = bool(after) and after[0].token_type == TokenType.EQ
        raise SqlError(
            "PARTITION has no meaning for a topic",
            detail="a column with one value is selected as such"
            if valued
            else "Kafka's partition follows from the key",
            hint="write INSERT INTO t SELECT 1 AS a, ..." if valued else "leave the clause out",
            at=at_partition,
        )
    columns: tuple[Name, ...] = ()
    if parser._match(TokenType.L_PAREN, advance=False) and not _opens_query(parser):
        columns = names(parser)
    return Insert(table=table, columns=columns, query=_query(parser), options=options, at=at)


def _opens_query(parser: Parser) -> bool:
    return bool(parser._next) and parser._next.text.upper() in ("SELECT", "WITH", "VALUES", "(")


def _query(parser: Parser) -> exp.Expr:
    if parser._match(TokenType.TABLE):
        # TABLE t is short for SELECT * FROM t.
        table = parser._parse_table_parts(schema=True)
        if table is None:
            parser.raise_error("Expected a table")
            raise AssertionError
        return exp.Select(expressions=[exp.Star()]).from_(table, copy=False)
    query = parser._parse_statement()
    if not isinstance(query, exp.Query | exp.Values):
        parser.raise_error("Expected a query")
        raise AssertionError
    return query


def _set(parser: Parser, at: int) -> SetOption:
    """SET 'key' = 'value'; the older SET key = value too."""
    if parser._match(TokenType.STRING, advance=False):
        return SetOption(option(parser), at)
    key = identifier(parser)
    text = key.text
    while parser._match(TokenType.DOT) or parser._match(TokenType.DASH):
        text += parser._prev.text + identifier(parser).text
    if not parser._match(TokenType.EQ):
        parser.raise_error("Expected =")
    value = parser._curr
    words = ""
    while parser._curr:
        words += parser._curr.text
        parser._advance()
    return SetOption(Option(text, words, key.at, value.start if value else key.at), at)


def _explain(parser: Parser, at: int) -> Explain:
    while parser._match_texts(_EXPLAIN_DETAILS):
        parser._match(TokenType.COMMA)
    parser._match_text_seq("PLAN", "FOR")
    if parser._match_text_seq("INSERT", advance=False):
        return Explain(_insert(parser), at)
    return Explain(_query(parser), at)


def hint_options(hint: exp.Hint | None) -> tuple[Option, ...]:
    """Return the options of an OPTIONS('key' = 'value', ...) hint. Raises SqlError for another hint, or another
    form."""
    found: list[Option] = []
    for call in hint.expressions if hint else []:
        if call.name.upper() != "OPTIONS":
            raise SqlError(f"the hint {call.name} has no meaning here", hint="a table takes OPTIONS(...)", at=call)
        for pair in call.expressions:
            if not isinstance(pair, exp.EQ) or not all(isinstance(s, exp.Literal) for s in (pair.left, pair.right)):
                raise SqlError("an option is written 'key' = 'value'", at=pair)
            found.append(Option(pair.left.name, pair.right.name, pair.left.meta["start"], pair.right.meta["start"]))
    return tuple(found)
