"""The accumulators of counts and sums: exact for integers and decimals, compensated for DOUBLE."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from operators.aggregates.accumulator import Accumulator, Argument
from operators.columns import duckdb_type
from operators.names import WEIGHT

_LIMB = 10**19
"""Sums of wide decimals are kept in parts below this and above it."""

_WHOLE = pa.decimal128(38, 0)

_SAFE_DIGITS = 28
"""This many digits leave room in 38 for the sum of ten billion rows."""


def counted(argument: Argument, *conditions: str) -> Accumulator:
    """Return how many rows (or values that are not NULL) there are, of those that meet the conditions."""
    if argument.append:
        start = argument.call("COUNT", argument.x or "*", *conditions)
    else:
        present = [] if argument.x is None else [f"{argument.x} IS NOT NULL"]
        start = f"CAST(COALESCE({argument.call('SUM', WEIGHT, *present, *conditions)}, 0) AS BIGINT)"
    return Accumulator(
        create=(start,),
        combine=("CAST(COALESCE(SUM({0}), 0) AS BIGINT)",),
        merge=("COALESCE({a0}, 0) + COALESCE({b0}, 0)",),
        types=(pa.int64(),),
    )


def wrapped(whole: str, type_: pa.DataType) -> str:
    """Return the HUGEINT `whole` in the integer type `type_`, around and around as often as it does not fit."""
    half, full = 2 ** (type_.bit_width - 1), 2**type_.bit_width
    return f"CAST(((({whole} + {half}) % {full}) + {full}) % {full} - {half} AS {duckdb_type(type_)})"


def narrowed(text: str, type_: pa.DataType) -> str:
    """Return the whole number `text` in the integer type `type_`, wrapped around where it does not fit, as in Flink."""
    return f"COALESCE(TRY_CAST({text} AS {duckdb_type(type_)}), {wrapped(f'CAST({text} AS HUGEINT)', type_)})"


def _whole_total(argument: Argument) -> Accumulator:
    """The sum of integers modulo 2^64, which is exact whenever the sum fits its type; NULL if there was no value."""
    weighted = argument.text if argument.append else f"CAST({argument.text} AS HUGEINT) * {WEIGHT}"
    if argument.type != pa.int64() and not argument.append:
        weighted = f"CAST({argument.text} AS BIGINT) * {WEIGHT}"
    around = wrapped("(CAST({a0} AS HUGEINT) + {b0})", pa.int64())
    return Accumulator(
        create=(narrowed(argument.call("SUM", weighted), pa.int64()),),
        combine=(narrowed("SUM({0})", pa.int64()),),
        merge=(
            "COALESCE(TRY({a0} + {b0}),"
            f" CASE WHEN {{a0}} IS NULL THEN {{b0}} WHEN {{b0}} IS NULL THEN {{a0}} ELSE {around} END)",
        ),
        types=(pa.int64(),),
    )


def _decimal_total(argument: Argument) -> Accumulator:
    """The sum of decimals of few enough digits, exactly; NULL if there was no value."""
    assert argument.type is not None
    kind = pa.decimal128(38, argument.type.scale)
    wide = duckdb_type(kind)
    weighted = argument.text
    if not argument.append:
        weighted = f"CAST({argument.text} AS {wide}) * CAST({WEIGHT} AS DECIMAL(18, 0))"
    return Accumulator(
        create=(f"CAST({argument.call('SUM', weighted)} AS {wide})",),
        combine=(f"CAST(SUM({{0}}) AS {wide})",),
        merge=("COALESCE({a0} + {b0}, {a0}, {b0})",),
        types=(kind,),
    )


def _wide_total(argument: Argument) -> Accumulator:
    """The sum of decimals of which two may overflow, exactly: whole units above and below `_LIMB`, and fractions."""
    assert argument.type is not None
    kind = pa.decimal128(38, argument.type.scale)
    whole = f"CAST(TRUNC({argument.text}) AS HUGEINT)"
    fraction = f"CAST({argument.text} - TRUNC({argument.text}) AS {duckdb_type(kind)})"
    times, decimal_times = ("", "") if argument.append else (f" * {WEIGHT}", f" * CAST({WEIGHT} AS DECIMAL(18, 0))")
    terms = (f"{whole} // {_LIMB}{times}", f"{whole} % {_LIMB}{times}", f"{fraction}{decimal_times}")
    types = (_WHOLE, _WHOLE, kind)
    return Accumulator(
        create=tuple(f"CAST({argument.call('SUM', s)} AS {duckdb_type(t)})" for s, t in zip(terms, types, strict=True)),
        combine=tuple(f"CAST(SUM({{{i}}}) AS {duckdb_type(t)})" for i, t in enumerate(types)),
        merge=tuple(f"COALESCE({{a{i}}} + {{b{i}}}, {{a{i}}}, {{b{i}}})" for i in range(len(types))),
        types=types,
    )


_NOT_FINITE = ("isnan({0})", "{0} = CAST('Infinity' AS DOUBLE)", "{0} = CAST('-Infinity' AS DOUBLE)")
"""The conditions of values that cannot be subtracted from a sum: those of each kind are counted instead."""


def _floating_total(argument: Argument) -> tuple[Accumulator, ...]:
    """The sum of finite numbers in two columns, itself and what rounding has lost of it (Neumaier), and apart from it
    what is not finite: a sum with Infinity can lose neither it nor anything else again."""
    x = f"CAST({argument.text} AS DOUBLE)"
    weighted = x if argument.append else f"{x} * {WEIGHT}"
    error = "({a0} - (({a0} + {b0}) - (({a0} + {b0}) - {a0}))) + ({b0} - (({a0} + {b0}) - {a0}))"
    lost = f"CASE WHEN isfinite({{a0}} + {{b0}}) THEN {error} ELSE 0 END"
    total = Accumulator(
        create=(argument.call("FSUM", weighted, f"isfinite({argument.text})"), "CAST(0 AS DOUBLE)"),
        combine=("FSUM({0})", "COALESCE(FSUM({1}), 0)"),
        merge=(
            "COALESCE({a0} + {b0}, {a0}, {b0})",
            f"COALESCE({{a1}}, 0) + COALESCE({{b1}}, 0) + COALESCE({lost}, 0)",
        ),
        types=(pa.float64(), pa.float64()),
    )
    if not argument.append:
        return total, *(counted(argument, condition.format(x)) for condition in _NOT_FINITE)
    rest = Accumulator(
        create=(argument.call("SUM", x, f"NOT isfinite({argument.text})"),),
        combine=("SUM({0})",),
        merge=("COALESCE({a0} + {b0}, {a0}, {b0})",),
        types=(pa.float64(),),
    )
    return total, rest


def sum_accumulators(argument: Argument) -> tuple[Accumulator, ...]:
    """Return the sum of the argument in whatever columns its type needs."""
    assert argument.type is not None
    if pa.types.is_decimal(argument.type):
        wide = argument.type.precision > _SAFE_DIGITS and not argument.distinct
        return (_wide_total(argument) if wide else _decimal_total(argument),)
    if pa.types.is_floating(argument.type):
        return _floating_total(argument)
    return (_whole_total(argument),)


def total_text(argument: Argument, columns: Sequence[Sequence[str]]) -> str:
    """Return the value of a total from the columns of its accumulators; NULL where a decimal has more than 38
    digits."""
    match columns:
        case ((high, low, fraction),):
            assert argument.type is not None
            whole = f"CAST(CAST({high} AS HUGEINT) * {_LIMB} + CAST({low} AS HUGEINT) AS {duckdb_type(_WHOLE)})"
            kind = duckdb_type(pa.decimal128(38, argument.type.scale))
            return f"TRY(CAST({whole} AS {kind}) + {fraction})"
        case ((value, lost), (rest,)):
            return f"COALESCE({rest}, {value} + {lost})"
        case ((value, lost), (nan,), (above,), (below,)):
            kinds = [
                (f"{nan} > 0 OR ({above} > 0 AND {below} > 0)", "NaN"),
                (f"{above} > 0", "Infinity"),
                (f"{below} > 0", "-Infinity"),
            ]
            cases = " ".join(f"WHEN {condition} THEN CAST('{kind}' AS DOUBLE)" for condition, kind in kinds)
            return f"(CASE {cases} ELSE {value} + {lost} END)"
        case _:
            return columns[0][0]
