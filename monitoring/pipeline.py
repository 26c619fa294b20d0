"""One query on one page: where does its time go, what holds it back, what does it lose?"""

from __future__ import annotations

from monitoring.panels import Column, Graph, Panel, Stat, Table, Target
from monitoring.rows import Row
from monitoring.words import STATES, backlog, grown, mean, rate, state

NOW: tuple[Panel, ...] = (
    Stat(
        title="State",
        description="Whether the query runs. Where it waits for Kafka or has failed, /readyz and the log say why.",
        unit="none",
        value=Target(state("query")),
        words=STATES,
    ),
    Stat(
        title="Running for",
        description="Time since the query was started, or started again after a failure.",
        unit="s",
        value=Target("time() - max(tailrace_query_started_timestamp_seconds{%Q})"),
    ),
    Stat(
        title="Last batch",
        description="Time since a batch was completed. When no rows come, one runs at every tick.",
        unit="s",
        value=Target("time() - max(tailrace_last_batch_completed_timestamp_seconds{%Q})"),
        warn=60,
        bad=600,
    ),
    Stat(
        title="Rows in",
        description="Records read from Kafka.",
        unit="cps",
        value=Target(rate("tailrace_input_records_total")),
    ),
    Stat(
        title="Rows out",
        description="Records committed to Kafka.",
        unit="cps",
        value=Target(rate("tailrace_output_records_total")),
    ),
    Stat(
        title="Behind",
        description="How long it takes to read what waits in Kafka, at the present pace.",
        unit="s",
        value=Target(backlog()),
        warn=60,
        bad=600,
    ),
)

THROUGHPUT: tuple[Panel, ...] = (
    Graph(
        title="Rows in by table",
        description="Records read from Kafka.",
        unit="cps",
        lines=(Target(rate("tailrace_input_records_total", "source"), "{{source}}"),),
    ),
    Graph(
        title="Bytes in by table",
        description="Bytes of the records read from Kafka: what TAILRACE_BATCH__BYTES bounds in a batch.",
        unit="Bps",
        lines=(Target(rate("tailrace_input_bytes_total", "source"), "{{source}}"),),
    ),
    Graph(
        title="Bytes exchanged by level",
        description=(
            "Bytes of the rows that tasks send to a level, of which there is one for each exchange. Where it is far"
            " above the bytes in, a join or a grouping multiplies rows, and batches are cut smaller for it."
        ),
        unit="Bps",
        lines=(Target(rate("tailrace_exchanged_bytes_total", "level"), "level {{level}}"),),
    ),
    Graph(
        title="Rows out by table",
        description="Records committed to Kafka.",
        unit="cps",
        lines=(Target(rate("tailrace_output_records_total", "sink"), "{{sink}}"),),
    ),
)

BATCHES: tuple[Panel, ...] = (
    Graph(
        title="Batch duration",
        description=(
            "The time of a batch from its start to its end. The dashed line is the least time between two starts:"
            " batches above it are late. At 0 a batch begins as soon as there are rows."
        ),
        unit="s",
        lines=(
            Target(mean("tailrace_batch_duration_seconds"), "mean"),
            Target(
                "histogram_quantile(0.95,"
                " sum by (le) (rate(tailrace_batch_duration_seconds_bucket{%Q}[$__rate_interval])))",
                "95 of 100",
            ),
            Target("max(tailrace_trigger_interval_seconds{%Q})", "trigger interval"),
        ),
        dashed=("trigger interval",),
    ),
    Graph(
        title="Batches",
        description="Batches completed each second.",
        unit="cps",
        lines=(Target(rate("tailrace_batches_total"), "batches"),),
    ),
    Graph(
        title="A batch by phase",
        description=(
            "Where the time of a batch goes on the driver. addBatch is the work of the tasks; latestOffset asks Kafka;"
            " walCommit and commitOffsets write to the checkpoint; queryPlanning is Spark's own."
        ),
        unit="s",
        lines=(
            Target(
                "sum by (phase) (rate(tailrace_batch_phase_duration_seconds_sum{%Q}[$__rate_interval]))"
                " / on () group_left () sum(rate(tailrace_batches_total{%Q}[$__rate_interval]))",
                "{{phase}}",
            ),
        ),
        stacked=True,
    ),
    Graph(
        title="Busy cores by phase",
        description=(
            "Where the time of the tasks goes, in cores: decode turns records into rows, ingest_operators and operators"
            " compute, lookup asks databases, encode and write put rows into Kafka. Waiting for others counts, too."
        ),
        unit="short",
        lines=(Target(rate("tailrace_task_seconds_total", "phase"), "{{phase}}"),),
        stacked=True,
    ),
)

KAFKA: tuple[Panel, ...] = (
    Graph(
        title="Lag by partition",
        description="Records of each partition that are not read yet. It is asked of Kafka even while a batch hangs.",
        unit="short",
        lines=(Target("sum by (topic, partition) (tailrace_kafka_consumer_lag{%Q})", "{{topic}} {{partition}}"),),
    ),
    Graph(
        title="Coming and read",
        description="How fast the topics grow and how fast they are read. Where more comes than is read, lag grows.",
        unit="cps",
        lines=(
            Target('sum(deriv(tailrace_kafka_offset{%Q,kind="end"}[$__rate_interval]))', "coming"),
            Target('sum(deriv(tailrace_kafka_offset{%Q,kind="read"}[$__rate_interval]))', "read"),
        ),
    ),
    Graph(
        title="Behind",
        description="How long it takes to read what waits in Kafka, at the present pace.",
        unit="s",
        lines=(Target(backlog(), "behind"),),
    ),
    Graph(
        title="Transactions",
        description=(
            "Transactions of the sink: committed; settled, committed as only its marker could tell; replayed, done"
            " already by an earlier attempt, after a failure."
        ),
        unit="cps",
        lines=(Target(rate("tailrace_transactions_total", "outcome"), "{{outcome}}"),),
    ),
)

TIME: tuple[Panel, ...] = (
    Graph(
        title="Watermark behind now",
        description="How far the event time of each operator is behind the clock. While old rows are read it is large.",
        unit="s",
        lines=(Target("max by (operator) (tailrace_watermark_lag_seconds{%Q})", "{{operator}}"),),
    ),
    Graph(
        title="Watermark behind now, by partition",
        description="The partition that is furthest behind holds the others back, until it is idle.",
        unit="s",
        lines=(
            Target(
                "time() - max by (source, partition) (tailrace_partition_watermark_timestamp_seconds{%Q})",
                "{{source}} {{partition}}",
            ),
        ),
    ),
    Table(
        title="Event time",
        description="The watermark of each operator: rows before it are late.",
        unit="none",
        keys=("operator",),
        columns=(
            Column("Watermark", "max by (operator) (tailrace_watermark_timestamp_seconds{%Q}) * 1000", "dateTimeAsIso"),
            Column("Behind now", "max by (operator) (tailrace_watermark_lag_seconds{%Q})", "s"),
        ),
        width=8,
    ),
    Graph(
        title="Idle partitions",
        description="Partitions that have been silent for so long that they no longer hold time back.",
        unit="short",
        lines=(Target("sum by (source) (tailrace_partition_idle{%Q})", "{{source}}"),),
        width=8,
    ),
    Graph(
        title="Late rows",
        description="Rows that arrived behind the watermark and are missing from the answers.",
        unit="cps",
        lines=(Target(rate("tailrace_late_records_total", "operator"), "{{operator}}"),),
        width=8,
    ),
)

CHANGES: tuple[Panel, ...] = (
    Graph(
        title="Changes by table",
        description="Rows that are added to each table that is written, and rows that are retracted from it.",
        unit="cps",
        lines=(Target(rate("tailrace_output_changes_total", "sink, kind"), "{{sink}} {{kind}}"),),
    ),
    Graph(
        title="Changes by operator",
        description="Rows that each operator adds and retracts. Where many are retracted, later operators work twice.",
        unit="cps",
        lines=(Target(rate("tailrace_changes_total", "operator, kind"), "{{operator}} {{kind}}"),),
    ),
    Graph(
        title="Retractions without a row",
        description="Retractions of rows that are not there: the input is no changelog, or its state has expired.",
        unit="cps",
        lines=(Target(rate("tailrace_dropped_retractions_total", "operator"), "{{operator}}"),),
        width=24,
        height=6,
    ),
)

STATE: tuple[Panel, ...] = (
    Graph(
        title="State by operator",
        description="Bytes that each operator keeps.",
        unit="bytes",
        lines=(Target("sum by (operator) (tailrace_state_bytes{%Q})", "{{operator}}"),),
        stacked=True,
        width=8,
    ),
    Graph(
        title="Rows of state by operator",
        description="Rows that each operator keeps.",
        unit="short",
        lines=(Target("sum by (operator) (tailrace_state_rows{%Q})", "{{operator}}"),),
        width=8,
    ),
    Graph(
        title="Committing state",
        description="Time that the tasks of a batch spend writing state to the checkpoint, added up.",
        unit="s",
        lines=(Target(mean("tailrace_state_commit_duration_seconds"), "a batch"),),
        width=8,
    ),
    Graph(
        title="Bytes from and to the object store",
        description=(
            "Bytes of the checkpoint that are read from and written to the object store, without Spark's logs; nothing"
            " for a checkpoint in a folder. Much is read while executors are new, or have less room for copies"
            " (TAILRACE_STATE_CACHE) than the state that is in use."
        ),
        unit="Bps",
        lines=(
            Target("sum(rate(tailrace_store_read_bytes_total{%Q}[$__rate_interval]))", "read"),
            Target("sum(rate(tailrace_store_written_bytes_total{%Q}[$__rate_interval]))", "written"),
        ),
    ),
    Graph(
        title="Operations on the object store",
        description="Operations on files of the checkpoint, without Spark's logs: stores charge for each.",
        unit="cps",
        lines=(Target(rate("tailrace_store_operations_total", "operation"), "{{operation}}"),),
    ),
)

ERRORS: tuple[Panel, ...] = (
    Graph(
        title="Records that cannot be read",
        description="Records that the format of their table could not decode.",
        unit="cps",
        lines=(Target(rate("tailrace_decode_errors_total", "topic"), "{{topic}}"),),
        width=6,
    ),
    Graph(
        title="Rows that cannot be computed",
        description="Overflows, divisions by zero, casts that fail.",
        unit="cps",
        lines=(Target(rate("tailrace_dead_records_total", "operator"), "{{operator}}"),),
        width=6,
    ),
    Graph(
        title="Dead letters by reason",
        description="Both of them, by why. The words are explained in docs/formats.md.",
        unit="cps",
        lines=(Target(rate("tailrace_dead_letter_records_total", "reason"), "{{reason}}"),),
        width=6,
    ),
    Graph(
        title="Failed batches",
        description="Batches that failed (the query was started again) and those of them that were replanned.",
        unit="short",
        lines=(
            Target(grown("tailrace_batch_failures_total", "query"), "failures"),
            Target(grown("tailrace_batches_replanned_total", "query"), "replanned"),
        ),
        width=6,
    ),
    Graph(
        title="Skipped records",
        description="Records that `tailrace checkpoint skip` has skipped since the checkpoint was made.",
        unit="short",
        lines=(Target("sum by (source) (tailrace_skipped_records{%Q})", "{{source}}"),),
        width=6,
    ),
    Graph(
        title="Clock at the start",
        description="How far the driver's clock was ahead of what its checkpoint and its topics knew; 0 = no doubt.",
        unit="s",
        lines=(Target("max by (query) (tailrace_clock_ahead_seconds{%Q})", "{{query}}"),),
        width=6,
    ),
)

PROCESSES: tuple[Panel, ...] = (
    Graph(
        title="Memory",
        description="Resident memory by executor. Pages that Python workers share are counted once.",
        unit="bytes",
        lines=(Target("sum by (executor, process) (tailrace_memory_bytes{%J})", "{{executor}} {{process}}"),),
        stacked=True,
    ),
    Graph(
        title="Memory of the driver's JVM",
        description="What the JVM uses of its heap and beside it. The dashed line is how large its heap may be.",
        unit="bytes",
        lines=(
            Target("sum by (area) (tailrace_jvm_memory_used_bytes{%J})", "{{area}}"),
            Target('sum(tailrace_jvm_memory_max_bytes{%J,area="heap"})', "largest heap"),
        ),
        dashed=("largest heap",),
    ),
    Graph(
        title="Collecting garbage",
        description="The share of its time that the driver's JVM spends collecting garbage.",
        unit="percentunit",
        lines=(Target("max by (job) (rate(tailrace_jvm_gc_seconds_total{%J}[$__rate_interval]))", "{{job}}"),),
        width=8,
    ),
    Graph(
        title="The driver's own cores",
        description="Cores that the driver's Python process keeps busy; its JVM and its workers are not in it.",
        unit="short",
        lines=(Target("sum by (job) (rate(process_cpu_seconds_total{%J}[$__rate_interval]))", "{{job}}"),),
        width=8,
    ),
    Graph(
        title="Executors",
        description="Connected executors. The dashed line is the requested number.",
        unit="none",
        lines=(
            Target("max by (job) (tailrace_executors{%J})", "connected"),
            Target("max by (job) (tailrace_executors_expected{%J})", "asked for"),
        ),
        dashed=("asked for",),
        width=8,
    ),
)

PIPELINE = (
    Row("Now", NOW),
    Row("Throughput", THROUGHPUT),
    Row("Batches", BATCHES),
    Row("Kafka", KAFKA),
    Row("Event time", TIME),
    Row("Changes", CHANGES),
    Row("State", STATE),
    Row("Errors", ERRORS),
    Row("Processes", PROCESSES),
)
