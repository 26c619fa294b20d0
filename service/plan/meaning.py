"""What a program means, as far as a checkpoint depends on it: its sources, its sinks, and its operators with state.

An operator is what it computes and keeps (the fingerprint of its kernel), what it reads (the text of the plan below
it, down to the tables), and the columns that spread its state. Its identity is a digest of these, and no running
number: an operator of another query that has the same identity keeps the same state. How long rows live under a TTL is
no part of it, only whether they do: state that may expire notes when each row was written. Nor is how DuckDB computes
it: functions, aggregates and kernels have versions, raised where a mend gives other answers than those in state.

State is kept under the identity that its operator had when it was first written, so that identities may be written
otherwise later: `formerly` is what an operator was called in checkpoints of format 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

from service.plan.canonical import MeaningText, TextOfFormat6, UnversionedText, fingerprint
from service.plan.describe import headline, kind
from service.plan.nodes import Job, Node, Scan, Sink
from service.plan.table import Connector, Format, Table
from service.plan.types import DataType
from service.plan.versions import versions_in
from service.plan.walk import in_order, inputs, with_inputs

TTLS = ("ttl", "left_ttl", "right_ttl")
"""The attributes of nodes that hold a time to live."""


ADDED = "added rows only"
"""The `changes` of a table that is written without updates."""


@dataclass(frozen=True, slots=True)
class SourceMeaning:
    """A table whose offsets Spark stores, by its position among the sources; `id` is that of the program's source."""

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
    and digests of all steps that feed it, in words that another version may choose otherwise, `tables` the digests of
    the tables, `versions` those of functions, aggregates and operators, its own and of what feeds it. `kept_as` is what
    its state is kept under; empty in checkpoints of format 6, where that is the identity. `texts` are the steps in
    words, by digest, and `text` is the operator; neither is kept in a checkpoint, since they may quote what is in a
    query, and `formerly` need not be.
    """

    identity: str
    name: str
    kind: str
    level: int
    spec: str
    lasting: tuple[bool, ...]
    placing: str
    steps: tuple[tuple[str, str], ...] = field(compare=False)
    tables: Mapping[str, str]
    versions: Mapping[str, int] = field(default_factory=dict, compare=False)
    kept_as: str = ""
    formerly: str = field(default="", compare=False)
    text: str = field(default="", compare=False)
    texts: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A whole program. `query` is its fingerprint, of all that changes an answer, `formerly` that of format 6. Of the
    ids of sources those below `used_ids` have been given, some perhaps to sources that a query before has read."""

    query: str
    zone: str = "UTC"
    levels: int = 0
    sources: tuple[SourceMeaning, ...] = ()
    outputs: tuple[OutputMeaning, ...] = ()
    operators: tuple[OperatorMeaning, ...] = ()
    used_ids: int = field(default=0, compare=False)
    formerly: str = field(default="", compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the record for a checkpoint, as JSON values."""
        stored = asdict(self)
        del stored["formerly"]
        for operator in stored["operators"]:
            del operator["text"], operator["texts"], operator["formerly"]
        return stored

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> Meaning:
        """Return what `to_json` wrote."""
        return Meaning(
            query=stored["query"],
            zone=stored["zone"],
            levels=stored["levels"],
            sources=tuple(
                SourceMeaning(**{"id": position, **s, "topics": tuple(s["topics"])})
                for position, s in enumerate(stored["sources"])
            ),
            outputs=tuple(OutputMeaning(**{**o, "topics": tuple(o["topics"])}) for o in stored["outputs"]),
            operators=tuple(
                OperatorMeaning(
                    **{
                        **o,
                        "lasting": tuple(o["lasting"]),
                        "steps": tuple((kind, step) for kind, step in o["steps"]),
                    }
                )
                for o in stored["operators"]
            ),
            used_ids=stored.get("used_ids", len(stored["sources"])),
        )


def in_current_form(known: Meaning, now: Meaning) -> Meaning:
    """Return the record of a checkpoint in its current form, for a query that means `now`.

    A query or an operator that was stored in format 6 is the one that has that name in it.
    """
    formerly = {each.formerly: each for each in now.operators}

    def current(operator: OperatorMeaning) -> OperatorMeaning:
        if operator.kept_as:
            return operator
        same = formerly.get(operator.identity)
        if same is not None:
            return replace(same, kept_as=operator.identity)
        return replace(operator, kept_as=operator.identity, tables={})

    query = now.query if known.query == now.formerly else known.query
    return replace(known, query=query, operators=tuple(map(current, known.operators)))


class Computed(NamedTuple):
    """An operator beside its step of the plan: its `kind`, the fingerprint of its kernel, and the one that it had in
    format 6; what spreads its rows, its level; the versions of kinds of operators, its own and of what feeds it."""

    kind: str
    spec: str
    formerly: str
    placing: str
    level: int
    versions: Mapping[str, int]


class Identity(NamedTuple):
    """The identity of an operator, and the one that it had in format 6."""

    now: str
    formerly: str


class Lineage:
    """The meaning of each step of a job, together with all its inputs."""

    def __init__(self, job: Job) -> None:
        self._zone = job.zone
        self._text, self._plain, self._formerly = MeaningText(), UnversionedText(), TextOfFormat6()
        self.query, self.query_formerly = fingerprint(job, self._text), fingerprint(job, self._formerly)
        self._timeless: dict[int, Node] = {}
        for node in in_order(job.sinks):
            fed = with_inputs(node, tuple(self._timeless[id(each)] for each in inputs(node)))
            self._timeless[id(node)] = _timeless(fed)
        self._given: Counter[str] = Counter()

    def identity(self, of: Node | Sink, computed: Computed) -> Identity:
        """Return the identity of an operator that computes the step `of`. Of operators that are equal in all of it,
        those after the first have a number."""
        raised = [f"{kind} {version}" for kind, version in sorted(computed.versions.items()) if version > 1]
        return Identity(
            self._numbered(computed.kind, computed, [computed.spec, *raised], self._text.of(self._fed(of))),
            # Functions, aggregates and operators all had version 1.
            self._numbered(computed.kind, computed, [computed.formerly, *raised], self._formerly.of(self._fed(of))),
        )

    def _numbered(self, kind: str, computed: Computed, spec: Sequence[str], text: str) -> str:
        parts = [*spec, computed.placing, str(computed.level), self._zone, text]
        found = f"{kind}-{_digest(chr(10).join(parts))}"
        self._given[found] += 1
        count = self._given[found]
        return found if count == 1 else f"{found}-{count}"

    def operator(self, of: Node | Sink, identity: Identity, name: str, computed: Computed) -> OperatorMeaning:
        """Return the record of an operator whose identity and name are known."""
        below = [node for node in in_order([of]) if node is not of]
        digests = [_digest(headline(self._timeless[id(node)])) for node in below]
        versions = {name: version for each in (*below, of) for name, version in versions_in(each).items()}
        kinds = {f"operator {kind}": version for kind, version in computed.versions.items()}
        return OperatorMeaning(
            identity=identity.now,
            name=name,
            kind=computed.kind,
            level=computed.level,
            spec=_digest(computed.spec + self._plain.own(self._fed(of))),
            lasting=tuple(getattr(of, ttl) > 0 for ttl in TTLS if hasattr(of, ttl)),
            placing=computed.placing,
            steps=tuple(zip(map(kind, below), digests, strict=True)),
            tables={n.table.name: _digest(self._plain.of(n.table)) for n in below if isinstance(n, Scan)},
            versions=dict(sorted((versions | kinds).items())),
            kept_as=identity.now,
            formerly=identity.formerly,
            text=f"table {of.table.name}" if isinstance(of, Sink) else headline(of),
            texts=dict(zip(digests, map(headline, below), strict=True)),
        )

    def _fed(self, of: Node | Sink) -> Node | Sink:
        """A step whose inputs have no lengths of TTLs."""
        return replace(of, input=self._timeless[id(of.input)]) if isinstance(of, Sink) else self._timeless[id(of)]


def _timeless(node: Node) -> Node:
    """`node` with every TTL replaced by the shortest one."""
    lasting = {name: 1 for name in TTLS if getattr(node, name, 0) > 0}
    return replace(node, **lasting) if lasting else node  # type: ignore[arg-type]


def source_meaning(table: Table, id_: int) -> SourceMeaning:
    """Return the record of a table that is read. The topics that match a pattern are stored elsewhere."""
    connector = table.connector
    topics = connector.topics or tuple(filter(None, [connector.topic_pattern]))
    return SourceMeaning(table.name, connector.kind, topics, id_)


def output_meaning(table: Table, columns: Sequence[int], key: Iterable[int] | None, *, append: bool) -> OutputMeaning:
    """Return the record of a table that is written, whose rows have `columns` and the key `key`."""
    names = None if key is None else [table.columns[columns[position]].name for position in key]
    return OutputMeaning(
        table=table.name,
        connector=table.connector.kind,
        topics=table.connector.topics,
        form={
            "key": ", ".join(f"{table.columns[k].name} {_type(table.columns[k].type)}" for k in table.key),
            "what tells rows apart": "nothing" if names is None else ", ".join(names),
            "changes": ADDED if append else "updates",
            **_formats(table.connector),
        },
    )


def _type(type_: DataType) -> str:
    """A type as the first checkpoints wrote it."""
    return TextOfFormat6().of(type_)


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
