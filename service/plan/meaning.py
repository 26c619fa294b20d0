"""What a program means, as far as a checkpoint depends on it: its sources, its sinks, and its operators with state.

An operator is what it computes (the fingerprint of its kernel), what it reads (the text of the plan below it, down to
the tables), and the columns that spread its state. Its identity is a digest of these, and no running number: an
operator of another query that has the same identity keeps the same state. How long rows live under a TTL is no part of
it, only whether they do: state that may expire notes when each row was written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any

from service.plan.canonical import Memo, canonical
from service.plan.describe import headline, kind
from service.plan.nodes import Job, Node, Scan, Sink
from service.plan.table import Connector, Format, Table
from service.plan.walk import in_order, inputs, with_inputs

TTLS = ("ttl", "left_ttl", "right_ttl")
"""The attributes of nodes that say how long rows live."""


ADDED = "added rows only"
"""What the `changes` of a table are that is written without updates."""


@dataclass(frozen=True, slots=True)
class SourceMeaning:
    """A table whose offsets Spark keeps, by its position among the sources; `id` is that of the program's source."""

    table: str
    connector: str
    topics: tuple[str, ...]
    id: int


@dataclass(frozen=True, slots=True)
class OutputMeaning:
    """A table that is written. `form` is what those who read the topic rely on: key, formats, whether rows are only
    added."""

    table: str
    connector: str
    topics: tuple[str, ...]
    form: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OperatorMeaning:
    """An operator that keeps state.

    `kind` and `name` are what people call it; `lasting` says of each TTL whether there is one. `steps` are the kinds
    and digests of all steps that feed it, `tables` the digests of the tables. `texts` are these steps in words, by
    digest, and `text` is the operator; neither is kept in a checkpoint, since they may quote what is in a query.
    """

    identity: str
    name: str
    kind: str
    level: int
    spec: str
    lasting: tuple[bool, ...]
    placing: str
    steps: tuple[tuple[str, str], ...]
    tables: Mapping[str, str]
    text: str = field(default="", compare=False)
    texts: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A whole program. `query` is its fingerprint, of all that changes an answer. Of the ids of sources those below
    `used_ids` have been given, some perhaps to sources that a query before has read."""

    query: str
    zone: str = "UTC"
    levels: int = 0
    sources: tuple[SourceMeaning, ...] = ()
    outputs: tuple[OutputMeaning, ...] = ()
    operators: tuple[OperatorMeaning, ...] = ()
    used_ids: int = field(default=0, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return what a checkpoint remembers, as JSON values."""
        told = asdict(self)
        for operator in told["operators"]:
            del operator["text"], operator["texts"]
        return told

    @staticmethod
    def from_json(told: Mapping[str, Any]) -> Meaning:
        """Return what `to_json` wrote."""
        return Meaning(
            query=told["query"],
            zone=told["zone"],
            levels=told["levels"],
            sources=tuple(
                SourceMeaning(**{"id": position, **s, "topics": tuple(s["topics"])})
                for position, s in enumerate(told["sources"])
            ),
            outputs=tuple(OutputMeaning(**{**o, "topics": tuple(o["topics"])}) for o in told["outputs"]),
            operators=tuple(
                OperatorMeaning(
                    **{
                        **o,
                        "lasting": tuple(o["lasting"]),
                        "steps": tuple((kind, step) for kind, step in o["steps"]),
                    }
                )
                for o in told["operators"]
            ),
            used_ids=told.get("used_ids", len(told["sources"])),
        )


class Lineage:
    """The meaning of each step of a job, together with all that feeds it."""

    def __init__(self, job: Job) -> None:
        self._zone = job.zone
        self._memo: Memo = {}
        self._timeless: dict[int, Node] = {}
        for node in in_order(job.sinks):
            fed = with_inputs(node, tuple(self._timeless[id(each)] for each in inputs(node)))
            self._timeless[id(node)] = _timeless(fed)
        self._given: Counter[str] = Counter()

    def identity(self, of: Node | Sink, name: str, spec: str, placing: str, level: int) -> str:
        """Return the identity of an operator that computes `spec` for the step `of`, spread by `placing`. Of operators
        that are equal in all of it, those after the first have a number."""
        text = "\n".join([spec, placing, str(level), self._zone, self._text(of)])
        found = f"{name}-{_digest(text)}"
        self._given[found] += 1
        count = self._given[found]
        return found if count == 1 else f"{found}-{count}"

    def operator(
        self, of: Node | Sink, identity: str, name: str, spec: str, placing: str, level: int
    ) -> OperatorMeaning:
        """Return what is remembered of such an operator, whose identity and name are known."""
        below = [node for node in in_order([of]) if node is not of]
        digests = [_digest(headline(self._timeless[id(node)])) for node in below]
        return OperatorMeaning(
            identity=identity,
            name=name,
            kind=name.rpartition("_")[0],
            level=level,
            spec=_digest(spec),
            lasting=tuple(getattr(of, ttl) > 0 for ttl in TTLS if hasattr(of, ttl)),
            placing=placing,
            steps=tuple(zip(map(kind, below), digests, strict=True)),
            tables={n.table.name: _digest(canonical(n.table)) for n in below if isinstance(n, Scan)},
            text=f"table {of.table.name}" if isinstance(of, Sink) else headline(of),
            texts=dict(zip(digests, map(headline, below), strict=True)),
        )

    def _text(self, of: Node | Sink) -> str:
        if isinstance(of, Sink):
            return canonical(replace(of, input=self._timeless[id(of.input)]), self._memo)
        return canonical(self._timeless[id(of)], self._memo)


def _timeless(node: Node) -> Node:
    """`node` with every TTL that it has as short as can be."""
    lasting = {name: 1 for name in TTLS if getattr(node, name, 0) > 0}
    return replace(node, **lasting) if lasting else node  # type: ignore[arg-type]


def source_meaning(table: Table, id_: int) -> SourceMeaning:
    """Return what is remembered of a table that is read; which topics match a pattern, is remembered elsewhere."""
    connector = table.connector
    topics = connector.topics or tuple(filter(None, [connector.topic_pattern]))
    return SourceMeaning(table.name, connector.kind, topics, id_)


def output_meaning(table: Table, columns: Sequence[int], key: Iterable[int] | None, *, append: bool) -> OutputMeaning:
    """Return what is remembered of a table that is written, whose rows have `columns` and are told apart by `key`."""
    told = None if key is None else [table.columns[columns[position]].name for position in key]
    return OutputMeaning(
        table=table.name,
        connector=table.connector.kind,
        topics=table.connector.topics,
        form={
            "key": ", ".join(f"{table.columns[k].name} {canonical(table.columns[k].type)}" for k in table.key),
            "what tells rows apart": "nothing" if told is None else ", ".join(told),
            "changes": ADDED if append else "updates",
            **_formats(table.connector),
        },
    )


def _formats(connector: Connector) -> dict[str, str]:
    def words(form: Format | None) -> str:
        if form is None:
            return "none"
        return " ".join([form.kind, *(f"{name}={text}" for name, text in sorted(form.options.items()))])

    return {
        "format of the key": words(connector.key_format),
        "format": words(connector.value_format),
        "fields of the key": ", ".join(connector.key_fields),
        "prefix of the key's fields": connector.key_fields_prefix,
        "fields of the value": connector.value_fields_include,
    }


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
