"""Conversion of CREATE TABLE to a table: types, computed columns, the time attribute, the key, the connector."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from service.plan.expressions import Expression
from service.plan.nodes import Field
from service.plan.table import ColumnKind, Connector, Table, TableColumn, TimeKind
from service.plan.types import STRING, DataType, Interval, Map, Timestamp, TimestampLtz, flink
from service.sql.compiler.compile import Context, compile_expression
from service.sql.errors import Mistakes, SqlError, did_you_mean
from service.sql.options.connector import read_connector
from service.sql.parse.statements import ColumnClause, CreateTable, KeyClause, Name, WatermarkClause
from service.sql.scope import INTERNAL, Scope
from service.sql.tables.database_columns import check_database_columns
from service.sql.tables.format_columns import check_formats
from service.sql.tables.metadata_columns import check_metadata, timestamps_in_zone


def read_table(statement: CreateTable, context: Context, mistakes: Mistakes, idle_timeout: int = 0) -> Table | None:
    """Return the table that `statement` declares; None, with its mistakes noted, if there are any."""
    before = mistakes.noted
    statement = replace(statement, columns=timestamps_in_zone(statement.columns, context.zone))
    connector = read_connector(statement.options, mistakes, statement.name.at, idle_timeout)
    table = _Columns(statement, context, mistakes).table(connector or Connector("unknown"))
    _check_key(table, statement, mistakes)
    check_formats(table, statement, mistakes)
    check_database_columns(table, statement, mistakes)
    return table if mistakes.noted == before else None


@dataclass(frozen=True, slots=True)
class _Columns:
    """Reads the columns of one statement."""

    statement: CreateTable
    context: Context
    mistakes: Mistakes

    def table(self, connector: Connector) -> Table:
        clauses = self.statement.columns
        self._check_names()
        columns = [self._declared(c, connector) if c.expression is None else _unknown(c) for c in clauses]
        stored = Scope.of(
            Field(c.name if c.kind is not ColumnKind.COMPUTED else INTERNAL * 2 + c.name, c.type, c.nullable)
            for c in columns
        )
        proctimes = set()
        for i, clause in enumerate(clauses):
            if clause.expression is not None:
                columns[i] = self._computed(clause, clause.expression, stored)
                if _is_proctime(clause.expression):
                    proctimes.add(i)
        for second in self.statement.watermarks[1:]:
            self.mistakes.add("a table has one WATERMARK at most", at=second.at)
        table = Table(
            name=self.statement.name.text, columns=tuple(columns), connector=connector, proctimes=frozenset(proctimes)
        )
        for watermark in self.statement.watermarks[:1]:
            with self.mistakes.collecting(watermark.at):
                table = self._with_watermark(table, watermark)
        for key in self.statement.keys[:1]:
            with self.mistakes.collecting(key.at):
                table = self._with_key(table, key)
        for key in self.statement.keys[1:]:
            self.mistakes.add("a table has one PRIMARY KEY at most", at=key.at)
        return table

    def _check_names(self) -> None:
        seen: set[str] = set()
        for clause in self.statement.columns:
            if clause.name.text in seen:
                self.mistakes.add(f'column "{clause.name.text}" is declared twice', at=clause.name.at)
            seen.add(clause.name.text)

    def _declared(self, clause: ColumnClause, connector: Connector) -> TableColumn:
        assert clause.type is not None
        column = _unknown(clause)
        try:
            column = replace(column, type=self._type(clause))
        except ValueError as error:
            self.mistakes.add(f'column "{clause.name.text}" has an unusable type', detail=str(error), at=clause.type)
            return column
        if clause.metadata is None:
            return replace(column, kind=ColumnKind.PHYSICAL)
        with self.mistakes.collecting(clause.metadata_at):
            check_metadata(clause.metadata, column.type, connector)
        return replace(column, kind=ColumnKind.METADATA, metadata=clause.metadata, virtual=clause.virtual)

    def _type(self, clause: ColumnClause) -> DataType:
        """The declared type; a TIMESTAMP without a precision that is the time attribute has milliseconds."""
        assert clause.type is not None
        kind = self.context.type_of(clause.type)
        is_time = any(w.column.text == clause.name.text for w in self.statement.watermarks)
        if is_time and isinstance(kind, Timestamp | TimestampLtz) and not clause.type.expressions:
            return replace(kind, precision=3)
        return kind

    def _computed(self, clause: ColumnClause, expression: exp.Expr, stored: Scope) -> TableColumn:
        column = _unknown(clause)
        with self.mistakes.collecting(expression):
            if aggregate := next(iter(expression.find_all(exp.Window, exp.Query)), None):
                raise SqlError("a computed column is computed from its own row", at=aggregate)
            value = compile_expression(expression, stored, self.context)
            if isinstance(value.type, Interval):
                raise SqlError("an interval cannot be a column", at=expression)
            return replace(column, kind=ColumnKind.COMPUTED, type=value.type, expression=value)
        return column

    def _with_watermark(self, table: Table, clause: WatermarkClause) -> Table:
        index = _position(table, clause.column)
        column = table.columns[index]
        if index in table.proctimes:
            raise SqlError(
                f'"{column.name}" is a processing-time attribute', detail="it needs no WATERMARK", at=clause.column.at
            )
        if column.type is _NO_TYPE:
            return table
        if not isinstance(column.type, Timestamp | TimestampLtz) or column.type.precision > 3:
            raise SqlError(
                f'column "{column.name}" cannot be the time attribute',
                detail=f"it is {flink(column.type)}; a time attribute is TIMESTAMP(3) or TIMESTAMP_LTZ(3), or coarser",
                hint="declare it as TIMESTAMP(3), or compute one: ts AS TO_TIMESTAMP_LTZ(millis, 3)",
                at=clause.column.at,
            )
        scope = Scope.of(Field(c.name, c.type, c.nullable) for c in table.columns)
        value = self._watermark(clause.expression, scope)
        if not isinstance(value.type, Timestamp | TimestampLtz):
            raise SqlError(f"the watermark is {flink(value.type)}, not a timestamp", at=clause.expression)
        return replace(table, rowtime=index, watermark=value)

    def _watermark(self, expression: exp.Expr, scope: Scope) -> Expression:
        """The watermark as written; withOffset(ts, ms), the older spelling, is ts - ms."""
        if isinstance(expression, exp.Anonymous) and expression.name.upper() == "WITHOFFSET":
            time, offset = expression.expressions
            delay = exp.Interval(
                this=exp.Literal.string(f"{int(offset.name) / 1000:.3f}"), unit=exp.Var(this="SECOND")
            ).update_positions(expression)
            expression = exp.Sub(this=time.copy(), expression=delay)
        return compile_expression(expression, scope, self.context)

    def _with_key(self, table: Table, clause: KeyClause) -> Table:
        if clause.enforced:
            raise SqlError(
                "a PRIMARY KEY cannot be enforced on a topic",
                hint="write PRIMARY KEY (...) NOT ENFORCED",
                at=clause.at,
            )
        indexes = []
        columns = list(table.columns)
        for name in clause.columns:
            index = _position(table, name)
            if columns[index].kind is not ColumnKind.PHYSICAL:
                raise SqlError(f'column "{name.text}" cannot be in the key', detail="it is not physical", at=name.at)
            columns[index] = replace(columns[index], nullable=False)
            indexes.append(index)
        return replace(table, columns=tuple(columns), key=tuple(indexes))


_NO_TYPE: DataType = Map(STRING, STRING)


def _unknown(clause: ColumnClause) -> TableColumn:
    """A column whose type could not be found out (yet)."""
    kind = ColumnKind.PHYSICAL if clause.expression is None else ColumnKind.COMPUTED
    return TableColumn(name=clause.name.text, type=_NO_TYPE, kind=kind, nullable=clause.nullable)


def _is_proctime(expression: exp.Expr) -> bool:
    return isinstance(expression, exp.Anonymous) and expression.name.upper() == "PROCTIME"


def _position(table: Table, name: Name) -> int:
    names = [c.name for c in table.columns]
    if name.text not in names:
        raise SqlError(
            f'column "{name.text}" does not exist in table "{table.name}"',
            detail=f"{table.name} has the columns {', '.join(names)}",
            hint=did_you_mean(name.text, names),
            at=name.at,
        )
    return names.index(name.text)


def _check_key(table: Table, statement: CreateTable, mistakes: Mistakes) -> None:
    connector = table.connector
    if connector.kind == "upsert-kafka" and not statement.keys:
        mistakes.add(
            "connector 'upsert-kafka' needs a PRIMARY KEY",
            hint="add PRIMARY KEY (<columns>) NOT ENFORCED",
            at=statement.name.at,
        )
    physical = [c.name for c in table.columns if c.kind is ColumnKind.PHYSICAL]
    option = next((o for o in statement.options if o.key == "key.fields"), None)
    for name in connector.key_fields:
        if name not in physical:
            mistakes.add(
                f"'key.fields' names the column \"{name}\", which does not exist",
                detail=f"the physical columns are {', '.join(physical)}",
                hint=did_you_mean(name, physical),
                at=option.value_at if option else statement.name.at,
            )
        elif connector.key_fields_prefix and not name.startswith(connector.key_fields_prefix):
            mistakes.add(
                f"key column \"{name}\" does not start with '{connector.key_fields_prefix}'",
                detail="'key.fields-prefix' says that all of them do",
                at=option.value_at if option else statement.name.at,
            )


def table_fields(table: Table) -> tuple[Field, ...]:
    """Return the columns of a table as a query sees them."""
    return tuple(
        Field(c.name, c.type, c.nullable and table.time_kind(i) is not TimeKind.PROCESSING, table.time_kind(i))
        for i, c in enumerate(table.columns)
    )
