"""The levels of a program on the files of a checkpoint, done as tasks of Spark do them, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from operators.sql import Sql
from service.checkpoint.address import CheckpointAddress
from service.checkpoint.answers import Answers
from service.checkpoint.blocks import BlockWriter
from service.checkpoint.files import Files
from service.checkpoint.version import LevelState, ShardState, Version
from service.plan.program import Operator
from service.runtime.envelope import Envelope
from service.runtime.layout import Layout
from service.runtime.shard import Shard
from service.runtime.shard_operators import Ask, ShardOperators
from service.runtime.topology import Topology
from service.spark.query import shard_state
from service.spark.query.shard_cache import ShardCache
from service.spark.query.shard_state import KeptShard


class LevelsOnFiles:
    """The levels of one program, whose state is in `folder`. `cache` has the shards that live on in a worker; `opened`
    may put others in the place of operators."""

    def __init__(
        self,
        topology: Topology,
        levels: int,
        folder: str,
        ask: Ask | None = None,
        opened: Callable[[ShardOperators], ShardOperators] = lambda operators: operators,
    ) -> None:
        self.cache = ShardCache()
        self._topology = topology
        self._levels = levels
        self._address = CheckpointAddress(folder)
        self._ask = ask
        self._opened = opened

    @property
    def files(self) -> Files:
        """The files of the checkpoint."""
        return self._address.open()

    def tasks(self, batch: int, waiting: list[Envelope], layout: Layout) -> Iterator[ShardState]:
        """Do the tasks of a batch, one after the other, each when it is asked for. What they tell of their state is
        given, what they tell others is added to `waiting`."""
        self.cache.begin(batch)
        for level in range(1, self._levels + 1):
            before = Version.before(self.files, batch).levels.get(level, LevelState(None, ()))
            here = [e for e in waiting if e.level == level]
            waiting[:] = [e for e in waiting if e.level != level]
            for number in range(layout.shards):
                yield self._task(batch, level, number, layout, before, here, waiting)

    def _task(
        self,
        batch: int,
        level: int,
        number: int,
        layout: Layout,
        before: LevelState,
        here: Sequence[Envelope],
        waiting: list[Envelope],
    ) -> ShardState:
        spec = SimpleNamespace(state=self._address, scratch=self._address.url)
        job: Any = SimpleNamespace(topology=self._topology, layout=layout, spec=spec)
        kept = KeptShard(job, level, number, before, BlockWriter(self.files, batch, level, number), self.cache)
        answers = Answers(self.files, batch, level, number)

        def ask(operator: Operator, keys: pa.Table, now: int) -> pa.Table:
            asked = self._ask
            assert asked is not None
            return answers.of(operator.identity, keys, lambda: asked(operator, keys, now))

        def take() -> ShardOperators:
            operators = kept.take()
            operators.ask_with(ask)
            return self._opened(operators)

        shard = Shard(self._topology, level, number, layout, before.clocks)
        with kept:
            waiting += shard.advance([e for e in here if e.shard == number], take)
            place = kept.close()
        done = ShardState(level, number, shard.save() if number == 0 else None, place)
        return ShardState.from_json(done.to_json())


def computing_with(sql: Sql) -> AbstractContextManager[object]:
    """Have all tasks compute with `sql`."""
    return patch.object(shard_state, "worker_sql", lambda scratch: sql)
