"""What others wait for is decided once for a checkpoint, and is over when it has been read."""

from __future__ import annotations

from service.deployment.awaited_tables import AWAITED, AwaitedTables, agree_on_awaited
from service.plan.program import Program, Source
from service.plan.table import Connector, Table
from tests.kept_files import KeptFiles

ORDERS = Source(0, Table("orders", (), Connector("kafka", topics=("o",))), (), None, after=(1, 2))
USERS = Source(1, Table("users", (), Connector("upsert-kafka", topics=("u",))), (), None)
RATES = Source(2, Table("rates", (), Connector("upsert-kafka", topics=("r",))), (), None, after=(1,))
PROGRAM = Program("q", (ORDERS, USERS, RATES), (), (), 1, "f")


def start(kept: KeptFiles, end: int = 100, *, planned: bool = False) -> AwaitedTables:
    """Start the job while the topics end at `end` and are empty in their second partition."""
    topics = {1: "u", 2: "r"}
    ends = agree_on_awaited(kept, PROGRAM, lambda source: {topics[source]: {0: end, 1: 0}}, planned=planned)
    return AwaitedTables(PROGRAM, ends)


def test_a_table_is_read_when_all_tables_that_it_waits_for_have_been() -> None:
    tables = start(KeptFiles())
    assert tables.names == {"orders": ("users", "rates"), "rates": ("users",)}
    tables.read(1, {"u": {"0": 99, "1": 0}})
    assert tables.waiting == {0: (1, 2), 2: (1,)}
    tables.read(1, {"u": {"0": 100, "1": 7}})
    assert tables.waiting == {0: (2,)}
    tables.read(2, {"r": {"0": 100, "1": 0}})
    assert not tables.waiting


def test_what_is_waited_for_does_not_grow_with_the_topic() -> None:
    kept = KeptFiles()
    start(kept, 100)
    again = start(kept, 200, planned=True)
    again.read(1, {"u": {"0": 150, "1": 0}})
    assert again.waiting == {0: (2,)}


def test_a_checkpoint_of_a_version_that_did_not_wait_goes_on_without_waiting() -> None:
    assert not start(KeptFiles(), planned=True).waiting


def test_until_a_batch_is_planned_another_query_may_wait_for_others() -> None:
    kept = KeptFiles()
    alone = Program("q", (USERS,), (), (), 1, "f")
    assert agree_on_awaited(kept, alone, lambda _: {}, planned=False) == {}
    assert AWAITED not in kept.files
    assert start(kept).waiting
    assert start(kept, planned=True).waiting


def test_a_table_that_has_no_records_is_not_waited_for() -> None:
    tables = start(KeptFiles(), 0)
    for source in (1, 2):
        tables.read(source, {})
    assert not tables.waiting
