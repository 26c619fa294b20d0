"""Rows of several channels in one payload, and what a shard reads of them."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa
import pytest

from operators.time import MIN_TIME
from service.runtime.envelope import Envelope, Kind, pack, unpack
from service.runtime.shared_payloads import ChannelRows, joined, parted, rows_by_exchange


def rows(*values: int) -> pa.Table:
    return pa.table({"c0": pa.array(values, pa.int64()), "d": pa.array([1] * len(values), pa.int8())})


def envelope(kind: Kind, payload: pa.Table, channel: str, sequence: int = 1, address: int = 0) -> Envelope:
    return Envelope(0, 1, kind, address, channel, sequence, 0, MIN_TIME, False, pack(payload))


def test_what_was_joined_is_taken_apart():
    parts = [ChannelRows("b", rows(1, 2)), ChannelRows("a", rows(3)), ChannelRows("c", rows(4, 5, 6))]
    assert list(parted(unpack(pack(joined(parts))))) == parts


def test_the_parts_have_the_schema_that_they_had():
    (part,) = parted(joined([ChannelRows("a", rows(1))]))
    assert part.rows.schema.equals(rows(1).schema, check_metadata=True)


def test_rows_of_one_channel_are_not_taken_for_those_of_several():
    with pytest.raises(ValueError, match="channels"):
        list(parted(rows(1)))


def test_rows_arrive_in_the_order_of_their_channels_whichever_share_a_payload():
    alone = {name: ChannelRows(name, rows(number, number)) for number, name in enumerate("abcd")}
    for first, second, third, fourth in permutations("abcd"):
        sent = [
            envelope(Kind.SHARED_ROWS, joined([alone[first], alone[second]]), second),
            envelope(Kind.ROWS, alone[third].rows, third),
            envelope(Kind.ROWS, alone[fourth].rows, fourth),
            envelope(Kind.ROWS, rows(9), "a", address=1),
        ]
        found = rows_by_exchange(sent)
        assert pa.concat_tables(found[0])["c0"].to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3]
        assert found[1] == [rows(9)]


def test_the_pieces_of_a_channel_arrive_in_the_order_in_which_they_left():
    sent = [envelope(Kind.ROWS, rows(number), "a", number) for number in (3, 1, 2)]
    assert pa.concat_tables(rows_by_exchange(sent)[0])["c0"].to_pylist() == [1, 2, 3]
