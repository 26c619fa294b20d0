"""Tables that cannot be read or written in this way, whatever is computed."""

from __future__ import annotations

from collections.abc import Iterator

from service.plan.nodes import Job, LookupJoin, Node, Place, Scan, Sink
from service.plan.table import Table
from service.plan.validate.problem import Problem
from service.plan.walk import in_order, inputs


def stream_problems(job: Job) -> Iterator[Problem]:
    """Yield the tables of databases that are read in another way than by a lookup join."""
    read = [sink.input for sink in job.sinks]
    for node in in_order(job.sinks):
        read += inputs(node)[:1] if isinstance(node, LookupJoin) else inputs(node)
    for node in read:
        if isinstance(node, Scan) and node.table.lookup is not None:
            yield Problem(
                node.place,
                f'table "{node.table.name}" of a database cannot be read as a stream',
                detail="'jdbc' is asked for the rows of a key",
                hint=f"write JOIN {node.table.name} FOR SYSTEM_TIME AS OF <left>.<proctime> AS ... ON ..., or read the"
                " changes of the table from Kafka",
            )


def node_table_problems(node: Node) -> Iterator[Problem]:
    """Yield what the table that `node` reads lacks."""
    if isinstance(node, Scan) and node.table.connector.kind == "upsert-kafka" and not node.table.key:
        yield _no_key(node.table, node.place)


def sink_table_problems(sink: Sink) -> Iterator[Problem]:
    """Yield what the table of a sink lacks, or has too much of."""
    table = sink.table
    if table.connector.kind == "upsert-kafka" and not table.key:
        yield _no_key(table, sink.place)
    form = table.connector.value_format
    if form and form.kind == "debezium-json" and form.options.get("schema-include", "").lower() == "true":
        yield Problem(
            sink.place,
            f'table "{table.name}" cannot be written with a schema in each record',
            detail="'debezium-json.schema-include' is for reading",
            hint="leave it out",
        )


def _no_key(table: Table, place: Place) -> Problem:
    return Problem(
        place,
        f'table "{table.name}" needs a PRIMARY KEY',
        detail="'upsert-kafka' keeps one row a key, the last one",
        hint="add PRIMARY KEY (column, ...) NOT ENFORCED",
    )
