"""All queries of all services on one page: what needs a look?"""

from __future__ import annotations

from monitoring.panels import Column, Graph, Panel, Stat, Table, Target
from monitoring.rows import Row
from monitoring.words import STATES, backlog, grown, mean, rate, state

KEYS = ("namespace", "job", "query")
EACH = ", ".join(KEYS)
NAMED = "{{job}} {{query}}"
PIPELINE = "/d/tailrace-pipeline?" + "&".join(f"var-{key}=${{__data.fields.{key}}}" for key in KEYS)

NOW: tuple[Panel, ...] = (
    Stat(
        title="Services",
        description="Drivers that answer Prometheus.",
        unit="none",
        value=Target("count(tailrace_up{%J})"),
    ),
    Stat(
        title="Queries running",
        description="Queries that run now.",
        unit="none",
        value=Target("sum(tailrace_query_active{%Q})"),
    ),
    Stat(
        title="Queries not running",
        description="Queries that wait for Kafka or have failed; finished ones do not count.",
        unit="none",
        value=Target("count(tailrace_query_active{%Q} == 0 unless tailrace_query_finished{%Q} == 1) or vector(0)"),
        bad=1,
    ),
    Stat(
        title="Oldest batch",
        description="Of the queries that run, the longest time since a batch was completed.",
        unit="s",
        value=Target(
            "max(time() - tailrace_last_batch_completed_timestamp_seconds{%Q}"
            " and on (namespace, job, query) tailrace_query_active{%Q} == 1)"
        ),
        warn=60,
        bad=600,
    ),
    Stat(
        title="Records waiting",
        description="Records in Kafka that are not read yet, over all partitions.",
        unit="short",
        value=Target("sum(tailrace_kafka_consumer_lag{%Q})"),
    ),
    Stat(
        title="Executors missing",
        description="Requested executors that are not connected.",
        unit="none",
        value=Target("sum(tailrace_executors_expected{%J} - tailrace_executors{%J})"),
        bad=1,
    ),
    Table(
        title="Alerts",
        description="Alerts of Tailrace that are firing. What each of them means is in the runbook.",
        unit="none",
        keys=("alertname", "severity", *KEYS),
        columns=(
            Column(
                "Firing",
                f'count by (alertname, severity, {EACH}) (ALERTS{{alertname=~"Tailrace.*",alertstate="firing",'
                'namespace=~"$namespace",job=~"$job"})',
                "none",
            ),
        ),
        height=5,
    ),
    Table(
        title="Queries",
        description="One line for each query. Its name opens the page of the query.",
        unit="none",
        keys=KEYS,
        columns=(
            Column("State", state(EACH), "none", words=STATES),
            Column(
                "Last batch",
                f"time() - max by ({EACH}) (tailrace_last_batch_completed_timestamp_seconds{{%Q}})",
                "s",
                warn=60,
                bad=600,
            ),
            Column("Batch takes", mean("tailrace_batch_duration_seconds", EACH), "s"),
            Column("Rows in", rate("tailrace_input_records_total", EACH), "cps"),
            Column("Rows out", rate("tailrace_output_records_total", EACH), "cps"),
            Column("Waiting", f"sum by ({EACH}) (tailrace_kafka_consumer_lag{{%Q}})", "short"),
            Column("Behind", backlog(EACH), "s", warn=60, bad=600),
            Column("Watermark behind", f"max by ({EACH}) (tailrace_watermark_lag_seconds{{%Q}})", "s"),
            Column("State kept", f"sum by ({EACH}) (tailrace_state_bytes{{%Q}})", "bytes"),
            Column("Late, 1 h", grown("tailrace_late_records_total", EACH, "1h"), "short", warn=1),
            Column("Dead letters, 1 h", grown("tailrace_dead_letter_records_total", EACH, "1h"), "short", bad=1),
            Column("Failures, 1 h", grown("tailrace_batch_failures_total", EACH, "1h"), "short", bad=1),
        ),
        link=PIPELINE,
        height=9,
    ),
)

WORK: tuple[Panel, ...] = (
    Graph(
        title="Rows in",
        description="Records read from Kafka.",
        unit="cps",
        lines=(Target(rate("tailrace_input_records_total", EACH), NAMED),),
    ),
    Graph(
        title="Rows out",
        description="Records committed to Kafka.",
        unit="cps",
        lines=(Target(rate("tailrace_output_records_total", EACH), NAMED),),
    ),
    Graph(
        title="Records waiting",
        description="Records in Kafka that are not read yet.",
        unit="short",
        lines=(Target(f"sum by ({EACH}) (tailrace_kafka_consumer_lag{{%Q}})", NAMED),),
    ),
    Graph(
        title="Batch duration",
        description="The mean time of a batch, from its start to its end.",
        unit="s",
        lines=(Target(mean("tailrace_batch_duration_seconds", EACH), NAMED),),
    ),
    Graph(
        title="Watermark behind now",
        description="How far the slowest operator's event time is behind the clock; far, while old rows are read.",
        unit="s",
        lines=(Target(f"max by ({EACH}) (tailrace_watermark_lag_seconds{{%Q}})", NAMED),),
    ),
    Graph(
        title="State",
        description="Bytes that the operators of each query keep.",
        unit="bytes",
        lines=(Target(f"sum by ({EACH}) (tailrace_state_bytes{{%Q}})", NAMED),),
    ),
)

TROUBLE: tuple[Panel, ...] = (
    Graph(
        title="Dead letters",
        description="Records that could not be read and rows that could not be computed.",
        unit="cps",
        lines=(Target(rate("tailrace_dead_letter_records_total", EACH), NAMED),),
        width=8,
    ),
    Graph(
        title="Late rows",
        description="Rows that arrived behind the watermark and are missing from the answers.",
        unit="cps",
        lines=(Target(rate("tailrace_late_records_total", EACH), NAMED),),
        width=8,
    ),
    Graph(
        title="Failed batches",
        description="Batches that failed; the query was started again each time.",
        unit="short",
        lines=(Target(grown("tailrace_batch_failures_total", EACH), NAMED),),
        width=8,
    ),
)

PROCESSES: tuple[Panel, ...] = (
    Graph(
        title="Memory",
        description="Resident memory of all processes of a service: driver, JVMs, Python workers, writers.",
        unit="bytes",
        lines=(Target("sum by (namespace, job) (tailrace_memory_bytes{%J})", "{{job}}"),),
    ),
    Table(
        title="Versions",
        description="Which version runs where, and how long its driver has been up.",
        unit="none",
        keys=("namespace", "job", "version"),
        columns=(
            Column(
                "Up for",
                "(time() - max by (namespace, job) (process_start_time_seconds{%J}))"
                " * on (namespace, job) group_right max by (namespace, job, version) (tailrace_build_info{%J})",
                "s",
            ),
        ),
        width=12,
    ),
)

OVERVIEW = (Row("Now", NOW), Row("Work", WORK), Row("Trouble", TROUBLE), Row("Processes", PROCESSES))
