"""Mistakes in a pipeline file: each with its place, what is wrong, what we know and what to do; all listed at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp

from service.plan.nodes import Place
from service.sql.parse.source import SourceText


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong: `primary` says what, `detail` what we know, `hint` what to do."""

    file: str
    place: Place
    primary: str
    detail: str = ""
    hint: str = ""

    def __str__(self) -> str:
        lines = [f"{self.file}:{self.place.line}:{self.place.column}: {self.primary}"]
        if self.detail:
            lines.append(f"  detail: {self.detail}")
        if self.hint:
            lines.append(f"  hint:   {self.hint}")
        return "\n".join(lines)


class SqlError(Exception):
    """One mistake on its way to the list; `at` is the syntax node, or the offset in the text, where it was found."""

    def __init__(self, primary: str, *, detail: str = "", hint: str = "", at: exp.Expr | int | None = None) -> None:
        super().__init__(primary)
        self.primary = primary
        self.detail = detail
        self.hint = hint
        self.at = at


class PipelineErrors(Exception):
    """All mistakes of a pipeline file, in the order of the file."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


class Mistakes:
    """Collects the mistakes of one file.

    `statement` is where the statement begins that is being looked at: the place of what has no other. `noted` counts
    the mistakes that were added, those that were known already too.
    """

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.statement = 0
        self.noted = 0
        self._found: dict[Mistake, None] = {}
        self._notes: dict[Mistake, None] = {}

    def add(self, primary: str, *, detail: str = "", hint: str = "", at: exp.Expr | int | None = None) -> None:
        """Note a mistake at a syntax node or an offset."""
        self._add(Mistake(self.source.name, self.place(at), primary, detail, hint))

    def note(self, primary: str, *, detail: str = "", hint: str = "", at: exp.Expr | int | None = None) -> None:
        """Note what is taken without effect; it makes no file wrong."""
        self._notes[Mistake(self.source.name, self.place(at), primary, detail, hint)] = None

    @property
    def notes(self) -> tuple[Mistake, ...]:
        """What was taken without effect, by place."""
        return tuple(sorted(self._notes, key=lambda m: (m.place.line, m.place.column)))

    def add_written(self, primary: str, *, hint: str, at: int) -> None:
        """Note a mistake at an offset of the file as written, before its variables are filled in."""
        self._add(Mistake(self.source.name, self.source.written_place(at), primary, "", hint))

    def add_placed(self, place: Place, primary: str, detail: str, hint: str) -> None:
        """Note a mistake whose place is known already."""
        self._add(Mistake(self.source.name, place, primary, detail, hint))

    def _add(self, mistake: Mistake) -> None:
        self.noted += 1
        self._found[mistake] = None

    def add_error(self, error: SqlError, at: exp.Expr | int | None = None) -> None:
        """Note `error`; `at` is used where the error does not say its own place."""
        self.add(error.primary, detail=error.detail, hint=error.hint, at=at if error.at is None else error.at)

    @contextmanager
    def collecting(self, at: exp.Expr | int | None = None) -> Iterator[None]:
        """Note a SqlError that the body raises and go on after the body."""
        try:
            yield
        except SqlError as error:
            self.add_error(error, at)

    def place(self, at: exp.Expr | int | None) -> Place:
        """Return the line and column of a syntax node (its first token that is known) or of an offset."""
        offset = at if isinstance(at, int) else offset_of(at)
        return self.source.place(self.statement if offset is None else offset)

    def all(self) -> tuple[Mistake, ...]:
        """Return all mistakes so far, by place."""
        return tuple(sorted(self._found, key=lambda m: (m.place.line, m.place.column)))

    def __bool__(self) -> bool:
        return bool(self._found)

    def __len__(self) -> int:
        return len(self._found)


def offset_of(node: exp.Expr | None) -> int | None:
    """Return where a syntax node starts in the text: the least start among its own tokens, as far as they are known."""
    if node is None:
        return None
    known = (n.meta["start"] for n in node.walk() if n._meta and "start" in n._meta)
    return min(known, default=None)


def did_you_mean(name: str, known: Iterable[str], least: float = 0.6) -> str:
    """Return a hint that names the known name most like `name`, or nothing; names that are alike in less are
    not meant."""
    names = list(known)
    folded = {n.lower(): n for n in reversed(names)}
    close = get_close_matches(name.lower(), folded, n=1, cutoff=least)
    return f'did you mean "{folded[close[0]]}"?' if close else ""
