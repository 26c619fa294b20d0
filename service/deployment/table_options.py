"""Checks of a table's options that need no connection: security mechanisms that no client here has, rows that cannot be
generated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from service.deployment.clusters import address_of_table
from service.formats import datagen
from service.kafka.errors import KafkaConfigError
from service.plan.table import Table
from service.settings import Kafka


@dataclass(frozen=True, slots=True)
class WrongOption:
    """A mistake in the options of `table`; `key` is the wrong option, empty if it concerns several."""

    table: Table
    key: str
    primary: str
    detail: str = ""
    hint: str = ""


def wrong_options(tables: Iterable[Table]) -> Iterator[WrongOption]:
    """Yield the options for which a job with these tables would be refused before it starts."""
    # Brokers that the table does not name may come from the settings, which a file can be checked without.
    anywhere = Kafka(bootstrap_servers="localhost:9092")
    for table in tables:
        if table.lookup is not None:
            continue  # its URL was read with the file, and holds a password
        try:
            if table.connector.kind == "datagen":
                datagen.rows_in_all(table)
            else:
                address_of_table(table, anywhere)
        except KafkaConfigError as error:
            key = f"properties.{error.option}" if error.option else ""
            yield WrongOption(table, key, error.primary, error.detail or "", error.hint or "")
        except datagen.DatagenError as error:
            yield WrongOption(table, error.option, str(error))
