"""The keys of SET: Flink's keys that have a meaning here or can be ignored; all others are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from zoneinfo import available_timezones

from service.sql.errors import Mistakes, did_you_mean
from service.sql.expressions.zones import zone_name
from service.sql.options.known import (
    ANY,
    BOOLEAN,
    DURATION,
    INTEGER,
    OptionKind,
    OptionSpec,
    flag,
    ignored,
    refused,
    words,
)
from service.sql.parse.statements import Option

_SERVICE = "it is a setting of the service"
_INNER = "the engine here decides this itself"


def _zone(text: str) -> str:
    return zone_name(text.strip())


def _name(text: str) -> str:
    name = text.strip()
    if not re.fullmatch(r"\w[\w .-]{0,127}", name):
        raise ValueError(
            "a name of at most 128 letters, digits, '_', '.', '-' or blanks, which begins with none of the"
            " last three: it names folders, too"
        )
    return name


SETTINGS: Mapping[str, OptionSpec] = {
    "table.exec.state.ttl": OptionSpec(
        DURATION, "how long unbounded state is kept after it was last written; 0 = forever", default="0"
    ),
    "table.local-time-zone": OptionSpec(OptionKind("zone", _zone), "the session's time zone", default="UTC"),
    "tailrace.timestamp-nanos": words(
        "what to do with a precision of seven to nine digits: truncate times to microseconds, or refuse the file",
        "cut",
        "refuse",
    ),
    "tailrace.temporal.wait-for-table": flag(
        "whether a temporal join in processing time first reads its table to the end that it had when the job was first"
        " started",
        default="true",
    ),
    "table.exec.source.idle-timeout": OptionSpec(
        DURATION, "a partition without rows for this long is idle; 0 = never", default="0"
    ),
    "table.exec.sink.not-null-enforcer": words(
        "what to do with a row with a NULL in a NOT NULL column: send it to the dead-letter topic, or drop it",
        "ERROR",
        "DROP",
    ),
    "table.exec.sink.type-length-enforcer": words(
        "what to do with a text too long for its column: write it unchanged, or truncate it", "IGNORE", "TRIM_PAD"
    ),
    "table.exec.sink.upsert-materialize": words(
        "a sink keeps rows by key if the plan does not prove the key unique", "AUTO"
    ),
    "table.exec.source.cdc-events-duplicate": flag("whether a keyed CDC source may repeat changes"),
    "table.optimizer.agg-phase-strategy": ignored("rows are aggregated before the exchange if possible"),
    "pipeline.name": OptionSpec(
        OptionKind("name", _name), "the name of the next job; by default the names of the tables that it writes"
    ),
    "table.dml-sync": ignored("a pipeline's queries run in parallel", BOOLEAN),
    "sql-client.execution.result-mode": ignored("there is no client"),
    "sql-client.verbose": ignored("there is no client"),
    "execution.runtime-mode": words("a pipeline is a stream", "STREAMING", "BATCH", "AUTOMATIC"),
    "parallelism.default": ignored(_SERVICE, INTEGER),
    "pipeline.max-parallelism": ignored(_SERVICE, INTEGER),
    "pipeline.object-reuse": ignored(_INNER, BOOLEAN),
    "pipeline.operator-chaining": ignored(_INNER),
    "pipeline.operator-chaining.enabled": ignored(_INNER),
    "pipeline.auto-watermark-interval": ignored("the watermark is computed for every batch"),
    "table.exec.resource.default-parallelism": ignored(_SERVICE, INTEGER),
    "table.exec.mini-batch.enabled": ignored("rows are always processed in batches", BOOLEAN),
    "table.exec.mini-batch.allow-latency": ignored("the trigger interval is a setting of the service", DURATION),
    "table.exec.mini-batch.size": ignored("the size of a batch is a setting of the service", INTEGER),
    "table.optimizer.distinct-agg.split.enabled": ignored(_INNER, BOOLEAN),
    "table.optimizer.reuse-sub-plan-enabled": ignored(_INNER, BOOLEAN),
    "table.optimizer.reuse-source-enabled": ignored(_INNER, BOOLEAN),
    "table.optimizer.join-reorder-enabled": ignored(
        "joins run in the order in which they are written, unless nothing compares two tables, or in that of LEADING",
        BOOLEAN,
    ),
    "table.optimizer.multiple-input-enabled": ignored(_INNER, BOOLEAN),
    "execution.checkpointing.interval": ignored("every batch is a checkpoint", DURATION),
    "execution.checkpointing.mode": ignored("every batch is exactly once"),
    "execution.checkpointing.timeout": ignored("every batch is a checkpoint", DURATION),
    "execution.checkpointing.min-pause": ignored("every batch is a checkpoint", DURATION),
    "execution.checkpointing.unaligned": ignored("every batch is a checkpoint", BOOLEAN),
    "execution.checkpointing.max-concurrent-checkpoints": ignored("every batch is a checkpoint", INTEGER),
    "execution.checkpointing.tolerable-failed-checkpoints": ignored("every batch is a checkpoint", INTEGER),
    "execution.checkpointing.externalized-checkpoint-retention": ignored("a checkpoint is always kept"),
    "execution.checkpointing.dir": ignored(_SERVICE),
    "execution.attached": ignored("a pipeline runs in the service", BOOLEAN),
    "execution.target": ignored("a pipeline runs in the service"),
    "state.backend": ignored("state is kept in one way"),
    "state.backend.type": ignored("state is kept in one way"),
    "state.backend.incremental": ignored("a checkpoint is always incremental", BOOLEAN),
    "state.checkpoints.dir": ignored(_SERVICE),
    "state.checkpoint-storage": ignored(_SERVICE),
    "restart-strategy": ignored(_SERVICE),
    "restart-strategy.type": ignored(_SERVICE),
    "restart-strategy.fixed-delay.attempts": ignored(_SERVICE),
    "restart-strategy.fixed-delay.delay": ignored(_SERVICE),
    "table.exec.emit.early-fire.enabled": flag("whether windows of GROUP BY emit results before they close"),
    "table.exec.emit.early-fire.delay": OptionSpec(
        DURATION, "how often, in processing time; 0 = with every batch that changes the result"
    ),
    "table.exec.emit.late-fire.enabled": flag("whether windows of GROUP BY emit results again for late rows"),
    "table.exec.emit.late-fire.delay": OptionSpec(
        DURATION, "how often, in processing time; 0 = with every batch that changes the result"
    ),
    "table.exec.emit.allow-lateness": OptionSpec(
        DURATION,
        "with late firing: how far the watermark may be past a window's end for a row to count; by default"
        " 'table.exec.state.ttl'",
    ),
    "table.sql-dialect": words("only Flink's default dialect", "default"),
    "table.exec.legacy-cast-behaviour": words("CAST fails if a value is out of range", "DISABLED"),
    "table.exec.sink.keyed-shuffle": ignored("rows are always exchanged by the sink's key"),
    "table.exec.sink.rowtime-inserter": ignored(
        "a record's timestamp is written if a METADATA column requests it", ANY
    ),
    "table.exec.simplify-operator-name-enabled": ignored(_INNER, BOOLEAN),
    "table.exec.sink.nested-constraint-enforcer": words("NOT NULL inside a column is not checked", "IGNORE"),
    "table.legacy-nested-row-nullability": words("fields of a ROW may be NULL as they are declared", "false"),
    "table.column-expansion-strategy": refused("* stands for all columns of a table: name those that you want"),
    "execution.savepoint.path": refused("a Flink savepoint cannot be read"),
}


_BATCH = "it is for batch jobs, and a pipeline is a stream"
_JOIN = "a join keeps the rows of both sides as state"
_CLUSTER = "it configures a Flink cluster, which Tailrace does not have"

FAMILIES: Mapping[str, str] = {
    **dict.fromkeys(("taskmanager.", "jobmanager.", "slot.", "slotmanager.", "resourcemanager.", "cluster."), _CLUSTER),
    **dict.fromkeys(("rest.", "web.", "akka.", "pekko.", "blob.", "heartbeat.", "high-availability.", "io."), _CLUSTER),
    **dict.fromkeys(
        ("env.", "yarn.", "kubernetes.", "security.", "historyserver.", "jobstore.", "fs.", "s3."), _CLUSTER
    ),
    **dict.fromkeys(("pipeline.jars", "pipeline.classpaths", "classloader.", "python."), "there are no jars to load"),
    **dict.fromkeys(
        ("job-result-store.", "job-event.store.", "client.", "task.", "zookeeper.", "gs.", "azure."), _CLUSTER
    ),
    **dict.fromkeys(("delegation.tokens.", "external-resource", "internal.", "scheduler", "jmx."), _CLUSTER),
    **dict.fromkeys(("high-availability", "user.artifacts.", "table.resources.", "plugin."), _CLUSTER),
    **dict.fromkeys(("table.builtin-", "table.catalog-store.", "table.catalog."), "there is one catalog"),
    **dict.fromkeys(("table.plan.", "table.generated-code.", "table.exec.operator-fusion-codegen."), _INNER),
    **dict.fromkeys(("table.exec.sort.", "table.exec.spill-compression.", "table.exec.disabled-operators"), _INNER),
    **dict.fromkeys(("table.exec.window-agg.", "table.exec.uid.", "table.exec.legacy-transformation-uids"), _INNER),
    **dict.fromkeys(("table.exec.interval-join.", "table.exec.unbounded-over.", "table.exec.shuffle-mode"), _INNER),
    **dict.fromkeys(("execution.buffer-timeout", "execution.sorted-inputs.", "execution.batch"), _INNER),
    **dict.fromkeys(("pipeline.force-", "pipeline.generic-types", "pipeline.serialization-config"), _INNER),
    **dict.fromkeys(("pipeline.registered-", "pipeline.default-kryo", "pipeline.auto-generate-uids"), _INNER),
    **dict.fromkeys(("pipeline.closure-cleaner-level", "pipeline.cached-files", "pipeline.vertex-"), _INNER),
    "table.display.": "there is no client",
    "metrics.": "metrics are served for Prometheus",
    "sql-client.": "there is no client",
    "state.": "state is kept in one way",
    "execution.checkpointing.": "every batch is a checkpoint",
    "execution.state-recovery.": "a job continues from its own checkpoint",
    "restart-strategy.": _SERVICE,
    "table.optimizer.non-deterministic-update.": "a row is always taken back as it was written",
    "table.optimizer.delta-join.": _JOIN,
    "table.optimizer.multi-join.": "joins on one key always share the exchange of their tables",
    "table.optimizer.ptf.": "there are no process table functions",
    "table.optimizer.source.": "what a source need not read is always left out",
    **dict.fromkeys(
        ("table.optimizer.runtime-filter.", "table.optimizer.dynamic-filtering.", "table.optimizer.adaptive-"), _BATCH
    ),
    **dict.fromkeys(("table.optimizer.join.broadcast", "table.exec.local-hash-agg."), _BATCH),
    "table.optimizer.skewed-join-optimization.": "the hint SKEW('alias', 'key') spreads a key with most rows",
    "table.optimizer.bushy-join-": "joins run as they are written, or in the order of the hint LEADING",
    "table.optimizer.": _INNER,
    "table.exec.delta-join.": _JOIN,
    "table.exec.resource.": _SERVICE,
    "table.exec.sink.upsert-materialize-strategy.": "a sink keeps rows by key in one way",
    "table.exec.sink.require-on-conflict": "a sink keeps the last row of a key",
    "table.rtas-ctas.": "CREATE TABLE ... AS starts with its file",
    "table.catalog-modification.": "there is one catalog",
    "execution.shutdown-on-": "the service ends when its last job has ended",
    **dict.fromkeys(
        ("execution.allow-client-", "execution.job-", "execution.program-config.", "execution.submit-failed-"), _CLUSTER
    ),
    "execution.terminate-application-": "a job that gives up leaves the others running",
    **dict.fromkeys(("execution.async-state.", "execution.sort-"), _INNER),
    "queryable-state.": "`tailrace state` reads the state of a job from its checkpoint",
    "table.exec.async-": _INNER,
    "table.exec.deduplicate.": _INNER,
    "table.exec.rank.": _INNER,
    "table.exec.mini-batch.": "rows are always processed in batches",
    "table.dynamic-table-options.enabled": "OPTIONS hints are always read",
}
"""The prefixes of Flink's keys that have no meaning here, and why; a key in SETTINGS takes precedence."""


class SqlSettings:
    """The keys that are set at one point of a file."""

    def __init__(self, mistakes: Mistakes) -> None:
        self._mistakes = mistakes
        self._values: dict[str, str] = {}
        self._read: dict[str, Any] = {}

    def set(self, option: Option) -> None:
        """Note the value of SET 'key' = 'value', or the mistake in it."""
        known = SETTINGS.get(option.key)
        family = next((why for start, why in FAMILIES.items() if option.key.startswith(start)), "")
        if known is None and family:
            self._mistakes.note(f"the setting '{option.key}' has no effect", detail=family, at=option.key_at)
        elif known is None:
            self._mistakes.add(
                f"the setting '{option.key}' is not known", hint=did_you_mean(option.key, SETTINGS), at=option.key_at
            )
        elif known.refused:
            self._mistakes.add(f"the setting '{option.key}' is not supported", detail=known.refused, at=option.key_at)
        else:
            self._take(option, known)

    def _take(self, option: Option, known: OptionSpec) -> None:
        try:
            value = known.kind.read(option.value)
        except ValueError as error:
            self._mistakes.add(
                f"'{option.key}' cannot be '{option.value}'",
                detail=f"it must be {error}",
                hint=self._near(option, known),
                at=option.value_at,
            )
            return
        if option.key == "execution.runtime-mode" and value != "STREAMING":
            self._mistakes.add(
                "a pipeline runs as a stream",
                hint="bound the sources with 'scan.bounded.mode' to make it end",
                at=option.value_at,
            )
            return
        self._values[option.key] = option.value
        self._read[option.key] = value

    @staticmethod
    def _near(option: Option, known: OptionSpec) -> str:
        if known.kind.name == "zone":
            if option.value.strip().upper().startswith(("GMT", "UTC", "+", "-")):
                return "write whole hours, 'GMT-08:00', or a name such as 'Asia/Kolkata'"
            return did_you_mean(option.value, sorted(available_timezones()))
        return did_you_mean(option.value, known.values)

    def reset(self, key: str | None) -> None:
        """Take back what SET has given 'key', or all keys, as RESET ['key'] does."""
        for each in [key] if key is not None else list(self._values):
            self._values.pop(each, None)
            self._read.pop(each, None)

    def value(self, key: str, default: Any) -> Any:
        """Return the value of `key`, in the shape that its kind gives it."""
        return self._read.get(key, default)

    @property
    def in_force(self) -> tuple[tuple[str, str], ...]:
        """The keys that mean something, and their values as written."""
        return tuple((k, v) for k, v in sorted(self._values.items()) if not SETTINGS[k].ignored)
