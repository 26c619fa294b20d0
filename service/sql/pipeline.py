"""A pipeline file: its statements in order, to the jobs that it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlglot import exp

from service.plan.deep_stack import on_a_deep_stack
from service.plan.nodes import Job, Place, Scan, Sink
from service.plan.table import Connector, Table, TableColumn
from service.plan.types import NULL, Interval
from service.plan.validate.check import problems
from service.plan.walk import in_order
from service.sql.errors import Mistake, Mistakes, PipelineErrors
from service.sql.options.connector import read_connector
from service.sql.parse.source import decoded, read_source
from service.sql.parse.statement_grammar import read_statements
from service.sql.parse.statements import (
    CreateTable,
    CreateTemporalFunction,
    CreateView,
    Drop,
    Explain,
    Insert,
    Name,
    Passed,
    Reset,
    SetOption,
    Statement,
    StatementSet,
    Unread,
)
from service.sql.resolve.context import Catalog, EmitSettings, QueryRejected, ResolveContext, View
from service.sql.resolve.from_clause import resolve_view
from service.sql.resolve.insert import resolve_insert
from service.sql.resolve.query import resolve_whole_query
from service.sql.resolve.relation import visible
from service.sql.resolve.temporal_functions import read_temporal_function
from service.sql.set_keys import SqlSettings
from service.sql.tables.create_table import read_table
from service.sql.tables.like import with_base

__all__ = ["Pipeline", "PipelineErrors", "load", "read"]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline file: `jobs` to run, `explains` to show; its `tables`, and the `settings` at its end.

    `notes` are about what was taken without effect; `option_places` are where the options of tables stand.
    """

    name: str
    jobs: tuple[Job, ...]
    explains: tuple[Job, ...]
    tables: Mapping[str, Table]
    settings: tuple[tuple[str, str], ...]
    notes: tuple[Mistake, ...] = ()
    option_places: Mapping[tuple[str, str], Place] = field(default_factory=dict)

    def place_of(self, table: Table, option: str) -> Place:
        """Return where an option of a table stands; of one that its declaration lacks, where its connector is named."""
        first = Place(1, 1)
        return self.option_places.get((table.name, option)) or self.option_places.get((table.name, "connector"), first)


def load(path: Path, environment: Mapping[str, str]) -> Pipeline:
    """Return the pipeline of a file. Raises PipelineErrors with all its mistakes."""
    text, wrong = decoded(path.read_bytes())
    if wrong is not None:
        mistakes = Mistakes(read_source(path.name, text, {}))
        mistakes.add_written("the file is not UTF-8", hint="save it as UTF-8", at=wrong)
        raise PipelineErrors(mistakes.all())
    return read(text, environment, name=path.name)


@on_a_deep_stack
def read(text: str, environment: Mapping[str, str] | None = None, name: str = "pipeline.sql") -> Pipeline:
    """Return the pipeline of a text. Raises PipelineErrors with all its mistakes."""
    source = read_source(name, text.removeprefix("\ufeff"), environment or {})
    mistakes = Mistakes(source)
    for missing in source.missing:
        mistakes.add_written(
            f"the environment has no variable {missing.name}",
            hint=f"set it, or write ${{{missing.name}:-default}}",
            at=missing.offset,
        )
    builder = _Builder(mistakes)
    for statement in read_statements(mistakes):
        builder.take(statement)
    for problem in (p for job in builder.sound for p in problems(job)):
        mistakes.add_placed(problem.place, problem.primary, problem.detail, problem.hint)
    if mistakes:
        raise PipelineErrors(mistakes.all())
    return builder.pipeline(name)


@dataclass(slots=True)
class _Builder:
    """Goes through the statements of one file.

    `sound` are the jobs that follow from what has no mistake. Of any other job, what its plan may not do could follow
    from a mistake that is listed already: in one of its tables, which is `doubtful`, or in a setting or a name before
    it, after which the builder is `unsure`.
    """

    mistakes: Mistakes
    settings: SqlSettings = field(init=False)
    catalog: Catalog = field(default_factory=Catalog)
    jobs: list[Job] = field(default_factory=list)
    explains: list[Job] = field(default_factory=list)
    sound: list[Job] = field(default_factory=list)
    doubtful: set[str] = field(default_factory=set)
    unsure: bool = False

    def __post_init__(self) -> None:
        self.settings = SqlSettings(self.mistakes)

    @property
    def session(self) -> ResolveContext:
        read = self.settings.value
        return ResolveContext(
            catalog=self.catalog,
            mistakes=self.mistakes,
            zone=read("table.local-time-zone", "UTC"),
            ttl=read("table.exec.state.ttl", 0),
            idle_timeout=read("table.exec.source.idle-timeout", 0),
            drops_nulls=read("table.exec.sink.not-null-enforcer", "ERROR") == "DROP",
            trims_text=read("table.exec.sink.type-length-enforcer", "IGNORE") == "TRIM_PAD",
            nanos_refused=read("tailrace.timestamp-nanos", "cut") == "refuse",
            waits_for_tables=read("tailrace.temporal.wait-for-table", True),
            emit=EmitSettings(
                early=read("table.exec.emit.early-fire.enabled", False),
                early_delay=read("table.exec.emit.early-fire.delay", None),
                late=read("table.exec.emit.late-fire.enabled", False),
                late_delay=read("table.exec.emit.late-fire.delay", None),
                lateness=read("table.exec.emit.allow-lateness", None),
            ),
            deduplicate_cdc=read("table.exec.source.cdc-events-duplicate", False),
        )

    def take(self, statement: Statement) -> None:
        """Act on one statement."""
        self.mistakes.statement = statement.at
        match statement:
            case SetOption() | Reset():
                self._set(statement)
            case CreateTable(query=None):
                self._table(statement)
            case CreateTable():
                self._table_of_query(statement)
            case Unread(name=None):
                self.unsure = True
            case Unread(name=Name(text=name)):
                self.catalog.entries.setdefault(name, None)
            case CreateView():
                self._view(statement)
            case Drop():
                self._drop(statement)
            case Passed():
                self.mistakes.note(f"{statement.words} has no effect", detail=statement.why, at=statement.at)
            case CreateTemporalFunction():
                self._temporal_function(statement)
            case Insert():
                self._job((statement,), self.jobs)
            case StatementSet():
                self._job(statement.inserts, self.jobs)
            case Explain(Insert() as insert):
                self._job((insert,), self.explains)
            case Explain(StatementSet() as inserts):
                self._job(inserts.inserts, self.explains)
            case Explain(exp.Expr() as query):
                self._explained_query(query)

    def _set(self, statement: SetOption | Reset) -> None:
        before = self.mistakes.noted
        match statement:
            case SetOption(option):
                self.settings.set(option)
            case Reset(key):
                self.settings.reset(key.text if key else None)
        self.unsure |= self.mistakes.noted > before

    @contextmanager
    def _declaring(self, name: str) -> Iterator[None]:
        """Note whether the body, which declares the table `name`, finds a mistake."""
        before = self.mistakes.noted
        yield
        if self.mistakes.noted > before:
            self.doubtful.add(name)
        else:
            self.doubtful.discard(name)

    def _table(self, statement: CreateTable) -> None:
        if not self._is_new(statement):
            return
        name, session = statement.name.text, self.session
        self.catalog.entries[name] = None
        with self._declaring(name), self.mistakes.collecting(statement.at):
            statement = with_base(statement, self.catalog.declared)
            self.catalog.declared[name] = statement
            self.catalog.entries[name] = read_table(statement, session.context, self.mistakes, session.idle_timeout)

    def _table_of_query(self, statement: CreateTable) -> None:
        """CREATE TABLE ... AS: a table with the columns of its query, and the INSERT that fills it."""
        assert statement.query is not None
        name = statement.name
        if not self._is_new(statement):
            return
        self.catalog.entries[name.text] = None
        if statement.columns or statement.keys or statement.watermarks or statement.like:
            self.mistakes.add(
                "CREATE TABLE ... AS takes the columns of its query",
                hint="leave the columns out, or write CREATE TABLE and INSERT INTO",
                at=name.at,
            )
            return
        session = self.session
        try:
            relation = visible(resolve_whole_query(statement.query, session), session.place(statement.query))
        except QueryRejected:
            return
        with self._declaring(name.text), self.mistakes.collecting(statement.at):
            connector = read_connector(statement.options, self.mistakes, name.at, session.idle_timeout)
            columns = tuple(TableColumn(f.name, f.type, nullable=f.nullable) for f in relation.fields)
            if connector is None or not self._plain_columns(columns, statement):
                return
            table = Table(name.text, columns, connector)
            self.catalog.declared[name.text] = replace(statement, query=None)
            self.catalog.entries[name.text] = table
        insert = Insert(table=name, columns=(), query=statement.query, options=(), at=statement.at)
        self._job((insert,), self.jobs)

    def _plain_columns(self, columns: tuple[TableColumn, ...], statement: CreateTable) -> bool:
        """Whether the columns of a query can be those of a table: each has a name of its own and a type."""
        names = [c.name for c in columns]
        for each in columns:
            if isinstance(each.type, Interval) or each.type == NULL:
                self.mistakes.add(f'column "{each.name}" has no type that a table has', hint="CAST it", at=statement.at)
                return False
            if names.count(each.name) > 1:
                self.mistakes.add(f'column "{each.name}" is there twice', hint="name it AS ...", at=statement.at)
                return False
        return True

    def _view(self, statement: CreateView) -> None:
        """A view is resolved where it is declared, for its mistakes, and again wherever it is used."""
        if not self._is_new(statement):
            return
        name = statement.name.text
        view = View(name, tuple(c.text for c in statement.columns), statement.query)
        try:
            resolve_view(view, self.session)
        except QueryRejected:
            self.catalog.entries[name] = None
        else:
            self.catalog.entries[name] = view

    def _temporal_function(self, statement: CreateTemporalFunction) -> None:
        if not self._is_new(statement):
            return
        self.catalog.entries[statement.name.text] = None
        try:
            function = read_temporal_function(statement, self.session)
        except QueryRejected:
            return
        self.catalog.entries[statement.name.text] = function

    def _drop(self, statement: Drop) -> None:
        """Forget a table or view; what was built from it stays as it is."""
        kind, name = statement.kind, statement.name.text
        if name in self.catalog.entries:
            del self.catalog.entries[name]
            self.catalog.declared.pop(name, None)
        elif statement.if_exists:
            self.mistakes.note(f"DROP {kind} IF EXISTS has no effect", detail="there is none to drop", at=statement.at)
        else:
            self.mistakes.add(f'{kind.lower()} "{name}" does not exist', hint="write IF EXISTS", at=statement.name.at)

    def _is_new(self, statement: CreateTable | CreateView | CreateTemporalFunction) -> bool:
        name = statement.name
        if name.text not in self.catalog.entries:
            return True
        if not statement.if_not_exists:
            self.unsure = True
            self.mistakes.add(
                f'"{name.text}" is declared already', hint="give it another name, or write IF NOT EXISTS", at=name.at
            )
        return False

    def _job(self, inserts: tuple[Insert, ...], jobs: list[Job]) -> None:
        sinks: list[Sink] = []
        session = self.session
        sound = True
        for insert in inserts:
            before = self.mistakes.noted
            try:
                sinks.append(resolve_insert(insert, session))
            except QueryRejected:
                continue
            sound &= self.mistakes.noted == before
        if sinks:
            self._add(self._named(tuple(sinks), len(jobs)), jobs, sound)

    def _add(self, job: Job, jobs: list[Job], sound: bool) -> None:
        """Add a job to its list. Of a statement set without some of its INSERTs, what is left is judged by itself."""
        jobs.append(job)
        read = (node.table.name for node in in_order(job.sinks) if isinstance(node, Scan))
        written = (sink.table.name for sink in job.sinks)
        if sound and not self.unsure and self.doubtful.isdisjoint((*read, *written)):
            self.sound.append(job)

    def _named(self, sinks: tuple[Sink, ...], position: int) -> Job:
        """A job is named after 'pipeline.name', else after its tables, without what has a meaning in paths."""
        tables = "_".join(dict.fromkeys(s.table.name for s in sinks))
        name = self.settings.value("pipeline.name", "") or re.sub(r"[^\w .-]|^\.", "_", tables)
        taken = {j.name for j in (*self.jobs, *self.explains)}
        name = next(n for n in (name, *(f"{name}_{i}" for i in range(2, position + 3))) if n not in taken)
        return Job(name=name, sinks=sinks, settings=self.settings.in_force, zone=self.session.zone)

    def _explained_query(self, query: exp.Expr) -> None:
        """EXPLAIN of a query: as if it were inserted into a table of its own."""
        session, before = self.session, self.mistakes.noted
        try:
            relation = visible(resolve_whole_query(query, session), session.place(query))
        except QueryRejected:
            return
        columns = tuple(TableColumn(f.name, f.type, nullable=f.nullable) for f in relation.fields)
        table = Table("query", columns, Connector("print"))
        sink = Sink(input=relation.node, table=table, columns=tuple(range(len(columns))), place=session.place(query))
        job = self._named((sink,), len(self.explains))
        self._add(job, self.explains, sound=self.mistakes.noted == before)

    def pipeline(self, name: str) -> Pipeline:
        tables = {n: t for n, t in self.catalog.entries.items() if isinstance(t, Table)}
        places = {
            (each.name.text, option.key): self.mistakes.place(option.key_at)
            for each in self.catalog.declared.values()
            for option in each.options
        }
        return Pipeline(
            name, tuple(self.jobs), tuple(self.explains), tables, self.settings.in_force, self.mistakes.notes, places
        )
