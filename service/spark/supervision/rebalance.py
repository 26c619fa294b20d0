"""That executors which join a running query get their share of its state.

Spark gives a task to the executor on which its state is loaded, and takes another only if that one has been busy for
`spark.locality.wait`. So an executor that comes later gets nothing to do while tasks are shorter than that. Which store
is loaded where is known to Spark's driver by what executors have told it. Here the driver is told so of an executor
that has yet to load the store: the next task goes there, and fetches the state from the checkpoint.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

PATIENCE = 5.0
"""Seconds after which executors that are still missing are not waited for any longer."""

TRIES = 3
"""How often at most state is moved for those that have joined."""

_STATE = "org.apache.spark.sql.execution.streaming.state."
_NAME = "default"
"""What Spark calls the store of an operator that has one."""


class StateStore(NamedTuple):
    """The state of one shuffle partition of one stateful step; Spark counts both from 0."""

    operator: int
    partition: int


def moves(places: Mapping[StateStore, str], executors: Sequence[str]) -> dict[StateStore, str]:
    """Which stores go to which executor, so that no executor has two more of a step than another: as few as do.

    `places` says where each store is now, which may be an executor that is gone.
    """
    load = Counter(place for place in places.values() if place in executors)
    moved: dict[StateStore, str] = {}
    for operator in sorted({store.operator for store in places}):
        stores = {store: place for store, place in places.items() if store.operator == operator}
        held = Counter(stores.values())
        each, more = divmod(len(stores), len(executors))
        # What is left over goes where it is already; else to those that have least of the other steps.
        order = sorted(executors, key=lambda e: (held[e] <= each, load[e], e))
        room = {executor: each + (rank < more) for rank, executor in enumerate(order)}
        homeless = []
        for store, place in sorted(stores.items()):
            if room.get(place, 0) > 0:
                room[place] -= 1
            else:
                homeless.append(store)
        free = [executor for executor in order for _ in range(room[executor])]
        for store, executor in zip(homeless, free, strict=True):
            moved[store] = executor
            load[executor] += 1
            load[stores[store]] -= 1
    return moved


class _Query:
    """How far a running query has got with those that joined it: `served` are the executors that its state is
    spread over, `joined` those that it is being spread over. That is looked at when batch `next_look` is done."""

    def __init__(self) -> None:
        self.served: frozenset[str] = frozenset()
        self.joined: frozenset[str] = frozenset()
        self.tries = 0
        self.next_look = 0


class Rebalancer:
    """Watches the queries of a session. `say` is given what was done: the query, how many executors there are, how many
    stores were moved, and of how many."""

    def __init__(self, session: SparkSession, say: Callable[[str, int, int, int], None]) -> None:
        jvm: Any = session._jvm
        self._jvm = jvm
        self._running: Any = session._jsparkSession.streams()
        self._coordinator = self._running.stateStoreCoordinator()
        self._nobody = jvm.PythonUtils.toSeq([])
        self._say = say
        self._queries: dict[str, _Query] = {}
        self._seen: frozenset[str] = frozenset()
        self._joined = 0.0

    def look(self, executors: Mapping[str, str], expected: int) -> None:
        """`executors` are those that are connected, with their hosts. Some seconds are left to those that are missing,
        so that state does not move with each of them."""
        if executors.keys() - self._seen:
            self._joined = time.monotonic()
        self._seen = frozenset(executors)
        if not executors or (len(executors) < expected and time.monotonic() < self._joined + PATIENCE):
            return
        active = {str(query.runId()): query for query in self._running.active()}
        self._queries = {run: self._queries.get(run, _Query()) for run in active}
        for run, query in active.items():
            self._attend(query, self._queries[run], executors)

    def _attend(self, query: Any, state: _Query, executors: Mapping[str, str]) -> None:
        progress = query.lastProgress()
        if progress is None or executors.keys() <= state.served:
            return
        if not executors.keys() <= state.joined:
            state.joined, state.tries, state.next_look = frozenset(executors), 0, 0
        if progress.batchId() < state.next_look:
            return
        stores = self._stores(query, progress)
        places = {store: place for store, key in stores.items() if (place := self._place(key))}
        moved = moves(places, list(executors)) if state.tries < TRIES else {}
        if not moved:
            state.served = frozenset(executors)
            return
        for store, executor in moved.items():
            self._coordinator.reportActiveInstance(stores[store], executors[executor], executor, self._nobody)
        if state.tries == 0:
            self._say(str(query.name()), len(executors), len(moved), len(places))
        # A task that was waiting for its turn just now still runs where it should have, and tells so; and while an
        # executor starts its first worker others may have waited long enough for its tasks. So look again, after a
        # batch that began after this.
        state.tries += 1
        state.next_look = progress.batchId() + 2

    def _stores(self, query: Any, progress: Any) -> dict[StateStore, Any]:
        """The stores of a query, and what Spark knows each by."""
        folder = query.streamingQuery().checkpointFile("state")
        store, of_run = (getattr(self._jvm, _STATE + name) for name in ("StateStoreId", "StateStoreProviderId"))
        return {
            StateStore(operator, partition): of_run(store(folder, operator, partition, _NAME), query.runId())
            for operator, told in enumerate(progress.stateOperators())
            for partition in range(told.numShufflePartitions())
        }

    def _place(self, key: Any) -> str:
        """The executor on which a store is, empty if nobody has it."""
        found = self._coordinator.getLocation(key)
        return str(found.get()).rpartition("_")[2] if found.isDefined() else ""
