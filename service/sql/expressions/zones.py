"""Between an instant and the wall clock of a zone. An instant is a plain TIMESTAMP in UTC.

DuckDB's calendar is asked for the zone only: to and from TIMESTAMPTZ, microseconds are a hundred times faster.
"""

from __future__ import annotations

import re
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from service.sql.errors import SqlError
from service.sql.expressions.literals import quoted

_UTC = {"UTC", "Etc/UTC", "GMT", "Z", "UCT", "Universal", "Zulu"}


_CUSTOM = re.compile(r"GMT([+-])(\d{1,2})(?::?00)?")


def zone_name(zone: str) -> str:
    """Return the name in the time zone database of `zone`, which may also be Java's GMT-08:00. Raises ValueError for
    any other.

    The database has names for whole hours, in which the sign is turned: Etc/GMT+8 is eight hours behind UTC.

    >>> zone_name("GMT-08:00")
    'Etc/GMT+8'
    """
    if custom := _CUSTOM.fullmatch(zone):
        hours = int(custom[2])
        zone = f"Etc/GMT{'-' if custom[1] == '+' else '+'}{hours}" if hours else "UTC"
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("a time zone such as 'Europe/Berlin', 'UTC' or 'GMT-08:00', in whole hours") from None
    return zone


@cache
def checked_zone(zone: str) -> str:
    """Return the name in the time zone database of a zone that a constant names. Raises SqlError if it is none."""
    try:
        return zone_name(zone)
    except ValueError:
        raise SqlError(f'"{zone}" is not a time zone', hint="write a name such as 'Europe/Berlin' or 'UTC'") from None


@cache
def _known_zones() -> str:
    return ", ".join(quoted(name) for name in sorted(available_timezones()))


def zone_of_row(text: str) -> str:
    """Return DuckDB text: the zone that the column `text` names, UTC where it names none, as old Java has it."""
    custom = "regexp_full_match({0}, 'GMT[+-](?:[01]?[0-9]|2[0-3])(?::?[0-5][0-9])?')".replace("{0}", text)
    return f"CASE WHEN {text} IN ({_known_zones()}) OR {custom} THEN {text} ELSE 'UTC' END"


def wall_clock(instant: str, zone: str) -> str:
    """Return what the clocks of `zone` show at `instant`."""
    return instant if zone in _UTC else f"timezone({quoted(zone)}, make_timestamptz(epoch_us({instant})))"


def later_instant(wall: str, zone: str) -> str:
    """Return the instant at which the clocks of `zone` show `wall`; of a time that comes twice the second, as in old
    Java."""
    return wall if zone in _UTC else f"make_timestamp(epoch_us(timezone({quoted(zone)}, {wall})))"


def instant(wall: str, zone: str) -> str:
    """Return the instant at which the clocks of `zone` show `wall`; of a time that comes twice the first.

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
