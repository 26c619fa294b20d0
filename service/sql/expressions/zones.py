"""Between an instant and the wall clock of a zone. An instant is a plain TIMESTAMP in UTC.

DuckDB's calendar is asked for the zone only: to and from TIMESTAMPTZ, microseconds are a hundred times faster.
"""

from __future__ import annotations

from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from service.sql.errors import SqlError
from service.sql.expressions.literals import quoted

_UTC = {"UTC", "Etc/UTC", "GMT", "Z", "UCT", "Universal", "Zulu"}


@cache
def checked_zone(zone: str) -> str:
    """`zone`, if it is a name of the time zone database that DuckDB knows as well."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise SqlError(f'"{zone}" is no time zone', hint="write a name such as 'Europe/Berlin' or 'UTC'") from None
    return zone


def wall_clock(instant: str, zone: str) -> str:
    """What the clocks of `zone` show at `instant`."""
    return instant if zone in _UTC else f"timezone({quoted(zone)}, make_timestamptz(epoch_us({instant})))"


def later_instant(wall: str, zone: str) -> str:
    """The instant at which the clocks of `zone` show `wall`; of a time that comes twice the second, as in old Java."""
    return wall if zone in _UTC else f"make_timestamp(epoch_us(timezone({quoted(zone)}, {wall})))"


def instant(wall: str, zone: str) -> str:
    """The instant at which the clocks of `zone` show `wall`; of a time that comes twice the first.

    The clocks of the day before tell what the first would be.
    """
    if zone in _UTC:
        return wall
    known = f"list_transform([{wall}], lambda w: struct_pack(wall := w, later := {later_instant('w', zone)}))"
    yesterday = "(k.later - INTERVAL '1 day')"
    first = f"(k.wall - ({wall_clock(yesterday, zone)} - {yesterday}))"
    tried = f"list_transform({known}, lambda k: struct_pack(wall := k.wall, later := k.later, first := {first}))"
    chosen = f"CASE WHEN {wall_clock('k.first', zone)} = k.wall THEN least(k.first, k.later) ELSE k.later END"
    return f"list_transform({tried}, lambda k: {chosen})[1]"
