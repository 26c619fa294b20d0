"""The Kafka clusters that a job writes to, and the writer of each output.

A task writes to each cluster in a transaction of its own. Outputs share a writer if they go to the same cluster with
the same login. Each writer of a job has a number, and with it markers and transactional ids of its own: two writers on
one cluster (as two users, say) would otherwise read each other's markers as their own, and leave rows out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from service.deployment.bounds import Store
from service.deployment.clusters import Address
from service.kafka.errors import KafkaConfigError

SIDE = "side"
_NAMES = {SIDE: "dead letters and late rows"}
LARGEST = "message.max.bytes"

WRITERS = "writers"
"""The small file of a checkpoint with the numbers of its writers."""

Properties = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writers:
    """`addresses` by number of the writer; the numbers of each output, and of dead letters and late rows (`side`)."""

    addresses: tuple[Address, ...] = ()
    of_output: Mapping[int, int]
    side: int | None = None

    def numbers(self, tables: Mapping[int, str]) -> dict[str, int]:
        """Return what a checkpoint stores: the number of the writer of each output, by the name of its table, which may
        be several, and that of dead letters and late rows."""
        found = {} if self.side is None else {SIDE: self.side}
        times: Counter[str] = Counter()
        for output, number in sorted(self.of_output.items()):
            table = tables[output]
            times[table] += 1
            found[f"table {table}{f' ({times[table]})' if times[table] > 1 else ''}"] = number
        return found

    def identity(self, checkpoint: str, number: int) -> str:
        """Return the name that a writer's markers and transactional ids begin with; `checkpoint` is the id of the
        checkpoint."""
        return f"{checkpoint}.{number}" if number else checkpoint


NOBODY = Writers(of_output={})
"""The writers of a job that writes nothing to Kafka."""


def writers_of(outputs: Mapping[int, Address], side: Address | None, cluster_of: Callable[[Address], str]) -> Writers:
    """Return the writers of a job. `cluster_of` asks Kafka for the id of a cluster, since one cluster has many
    addresses."""
    written = [*outputs.values(), *([] if side is None else [side])]
    several = any(_place(each) != _place(written[0]) for each in written)
    found: list[tuple[tuple[str, Properties], list[Address]]] = []

    def number(address: Address) -> int:
        way = (cluster_of(address) if several else "", _login(address))
        for at, (known, addresses) in enumerate(found):
            if known == way:
                addresses.append(address)
                return at
        found.append((way, [address]))
        return len(found) - 1

    of_output = {output: number(address) for output, address in outputs.items()}
    of_side = None if side is None else number(side)
    return Writers(addresses=tuple(_together(each) for _, each in found), of_output=of_output, side=of_side)


def _login(address: Address) -> Properties:
    return {name: text for name, text in address.librdkafka.items() if name.startswith(("security.", "sasl.", "ssl."))}


def _place(address: Address) -> Properties:
    return {**_login(address), "bootstrap.servers": address.librdkafka["bootstrap.servers"]}


def _together(addresses: Sequence[Address]) -> Address:
    """One address for outputs that share a writer: the first that sets how to send is followed, and the largest record
    that any of them allows is allowed."""
    merged: Properties = {}
    for each in reversed(addresses):
        merged |= each.librdkafka
    largest = [int(text) for each in addresses if (text := each.librdkafka.get(LARGEST, "")).isdigit()]
    return Address(librdkafka={**merged, **({LARGEST: str(max(largest))} if largest else {})}, java=addresses[0].java)


def agree_on_writers(store: Store, writers: Writers, tables: Mapping[int, str]) -> None:
    """Store in a checkpoint which writer writes what, `tables` being the names of the outputs' tables. Raises as
    `check_unchanged`."""
    known, now = store.read(WRITERS) or {}, writers.numbers(tables)
    check_unchanged(known, now)
    if now.keys() - known.keys():
        store.write(WRITERS, {**known, **now})


def check_unchanged(known: Mapping[str, int], now: Mapping[str, int]) -> None:
    """Raise KafkaConfigError if an output has another writer than the checkpoint says: the interrupted batch may be
    written by the old one, and the new one would write it again."""
    moved = [_NAMES.get(each, each) for each in now if known.get(each, now[each]) != now[each]]
    if moved:
        raise KafkaConfigError(
            f"{', '.join(dict.fromkeys(moved))} cannot be written in other transactions than before",
            "rows for one cluster and one login are one transaction, which is fixed by the checkpoint",
            "give the same tables a common login as before; or set TAILRACE_CHECKPOINT to a new folder to start over",
        )
