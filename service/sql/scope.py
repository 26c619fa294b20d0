"""The names that a query may refer to: the columns of its input, in order, each with a qualifier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field

from service.plan.nodes import Field
from service.plan.types import Row, flink
from service.sql.errors import SqlError, did_you_mean

INTERNAL = "\0"
"""First character of the names of columns that the resolver adds: a user cannot write it, a message never shows it."""

POSITION = f"{INTERNAL}#"
"""What stands before a number in a name that the resolver writes for the column at that position."""


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column as a query sees it. One that is not `listed` is left out of `*` and needs its qualifier; one with an
    `alias` is found under that name alone."""

    field: Field
    qualifier: str = ""
    listed: bool = True
    alias: str = ""

    @property
    def name(self) -> str:
        """The name that a query finds it by."""
        return self.alias or self.field.name

    @property
    def internal(self) -> bool:
        """Whether the resolver made it, so that no query can name it."""
        return self.name.startswith(INTERNAL)


@dataclass(frozen=True, slots=True)
class Found:
    """The column that a name refers to; `path` are the names left over, fields inside a ROW column."""

    index: int
    field: Field
    path: tuple[str, ...] = ()


def position(parts: Sequence[str]) -> int:
    """Return the position that a name of the resolver stands for; raises SqlError, without a place, for another
    name."""
    if not parts[0].startswith(POSITION):
        raise SqlError(f'column "{".".join(parts)}" does not exist here')
    return int(parts[0].removeprefix(POSITION))


class _Names:
    """Where the columns of a scope are, by name: a query may look up ten thousand of them."""

    def __init__(self, columns: Sequence[ScopeColumn]) -> None:
        self.qualifiers = tuple(dict.fromkeys(c.qualifier for c in columns if c.qualifier))
        self.listed: dict[str, list[int]] = {}
        self.owned: dict[tuple[str, str], list[int]] = {}
        for i, each in enumerate(columns):
            self.owned.setdefault((each.qualifier, each.name), []).append(i)
            if each.listed:
                self.listed.setdefault(each.name, []).append(i)


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns of a relation by position; names are case-sensitive, as in Flink."""

    columns: tuple[ScopeColumn, ...] = ()
    _made: list[_Names] = dataclass_field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def _names(self) -> _Names:
        if not self._made:
            self._made.append(_Names(self.columns))
        return self._made[0]

    @staticmethod
    def of(fields: Iterable[Field], qualifier: str = "") -> Scope:
        """Return a scope of `fields`, all under one qualifier."""
        return Scope(tuple(ScopeColumn(f, qualifier) for f in fields))

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of its columns."""
        return tuple(c.field for c in self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[ScopeColumn]:
        return iter(self.columns)

    def field(self, index: int) -> Field:
        """Return the field of the column at `index`."""
        return self.columns[index].field

    def beside(self, right: Scope) -> Scope:
        """Return the scope of a join: the columns of `self`, then those of `right`."""
        return Scope(self.columns + right.columns)

    def without_time(self) -> Scope:
        """Return the same columns, time attributes being plain timestamps."""
        return Scope(tuple(replace(c, field=c.field.timeless) for c in self.columns))

    def qualified(self, qualifier: str) -> Scope:
        """Return the same columns as another table would show them, under one alias."""
        return Scope(tuple(replace(c, qualifier=qualifier) for c in self.columns))

    def starred(self, qualifier: str = "") -> tuple[int, ...]:
        """Return the positions that `*`, or `qualifier.*`, stands for."""
        if qualifier:
            return tuple(i for i, c in enumerate(self.columns) if c.qualifier == qualifier and not c.internal)
        return tuple(i for i, c in enumerate(self.columns) if c.listed and not c.internal)

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """The names of the tables that its columns are of."""
        return self._names.qualifiers

    def lookup(self, parts: Sequence[str]) -> Found:
        """Return the column that `parts`, the dotted name as written, refers to: `column`, `table.column`, either
        followed by fields of a ROW. Raises SqlError, without a place, where there is none or more than one."""
        if parts[0].startswith(POSITION):
            index = position(parts)
            return Found(index, self.field(index), tuple(parts[1:]))
        if len(parts) > 1 and parts[0] in self.qualifiers:
            return self._one(parts, self._names.owned.get((parts[0], parts[1]), []), 2)
        return self._one(parts, self._names.listed.get(parts[0], []), 1)

    def _one(self, parts: Sequence[str], found: list[int], used: int) -> Found:
        if len(found) > 1:
            raise self._ambiguous(parts, found)
        if not found:
            raise self._unknown(parts)
        index, path = found[0], tuple(parts[used:])
        field = self.field(index)
        if path and not isinstance(field.type, Row):
            raise SqlError(
                f'column "{field.name}" has no fields',
                detail=f'"{path[0]}" would be a field of it, but it is {flink(field.type)} and no ROW',
            )
        return Found(index, field, path)

    def _ambiguous(self, parts: Sequence[str], found: list[int]) -> SqlError:
        owners = [f"{self.columns[i].qualifier or 'the input'}" for i in found]
        return SqlError(
            f'column "{".".join(parts)}" is ambiguous',
            detail=f"it is a column of {' and of '.join(dict.fromkeys(owners))}",
            hint=f"write {' or '.join(dict.fromkeys(f'{o}.{parts[-1]}' for o in owners if o != 'the input'))}"
            if len(set(owners)) > 1
            else "",
        )

    def _unknown(self, parts: Sequence[str]) -> SqlError:
        visible = [c for c in self.columns if not c.internal]
        if len(parts) > 1 and parts[0] in self.qualifiers:
            owner, name = parts[0], parts[1]
            visible = [c for c in visible if c.qualifier == owner]
        elif len(parts) > 1 and not any(c.name == parts[0] for c in visible):
            known = ", ".join(self.qualifiers) or "no named table"
            return SqlError(
                f'table or column "{parts[0]}" does not exist here',
                detail=f"the query reads {known}",
                hint=did_you_mean(parts[0], (*self.qualifiers, *(c.name for c in visible))),
            )
        else:
            owner, name = (self.qualifiers[0] if len(self.qualifiers) == 1 else ""), parts[0]
        names = list(dict.fromkeys(c.name for c in visible))
        return SqlError(
            f'column "{name}" does not exist' + (f' in "{owner}"' if owner else ""),
            detail=f"{owner or 'the input'} has the columns {', '.join(names)}" if names else "there is no input here",
            hint=did_you_mean(name, names),
        )
