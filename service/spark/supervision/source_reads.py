"""The options of the sources of a query: Kafka's properties, where each begins, and its channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.checkpoint.batch_log import OFFSETS, ends, last
from service.checkpoint.files import Files
from service.deployment.deployment import Deployment
from service.runtime.watermarks import channel_name
from service.spark.query.query import SourceOptions
from service.spark.query.run_folder import RunFolder


def starting_offsets(deployment: Deployment, files: Files) -> dict[int, str]:
    """Return where each Kafka source begins if Spark's log has no offsets of it: Spark's JSON of offsets, or
    'earliest' for a source for which a batch has been planned already."""
    program = deployment.program
    planned = last(files, OFFSETS)
    stops = ends(files, planned) if planned >= 0 else []
    begun = {source.id for source, stop in zip(program.sources, stops, strict=False) if stop is not None}
    return {
        source.id: "earliest" if source.id in begun else deployment.starting_offsets(source.id)
        for source in program.sources
        if source.id in deployment.source_addresses
    }


def source_options(
    deployment: Deployment, starts: Mapping[int, str], rows: Mapping[int, int], folder: RunFolder
) -> Mapping[int, SourceOptions]:
    """Return the options of the sources in `starts`, which holds where each begins. `rows` are the records of each in a
    batch, and `folder` has the ends that still move."""
    return {
        source: SourceOptions(
            properties=deployment.source_addresses[source].java,
            starting_offsets=start,
            batch_rows=rows[source],
            ends="" if deployment.ends is None else str(folder.ends_file(source)),
        )
        for source, start in starts.items()
    }


def topics_of_ticks(deployment: Deployment) -> Mapping[int, Mapping[str, Any]]:
    """Return, by source, where a tick finds its channels (`TickSource`)."""
    addresses = deployment.source_addresses
    return {
        source.id: {"kafka": addresses[source.id].librdkafka, "topics": source.table.connector.topics}
        if source.id in addresses
        else {"channels": [channel_name(source.id, source.table.name, 0)]}
        for source in deployment.program.sources
    }
