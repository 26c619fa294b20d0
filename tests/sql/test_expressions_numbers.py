"""Numbers against a model in Python: how Java writes a DOUBLE, and exact decimals, for many random values."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from service.plan import types
from service.plan.expressions import render
from service.plan.types import DOUBLE
from tests.sql.evaluation import SETTINGS, compiled

EXACT = Context(prec=400)


def doubles() -> list[float]:
    rng = random.Random(3)
    drawn = [struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0] for _ in range(3000)]
    drawn += [rng.uniform(-1, 1) * 10 ** rng.randint(-8, 20) for _ in range(3000)]
    drawn += [float(rng.randint(-(10**9), 10**9)) for _ in range(1000)] + [10.0**k for k in range(-30, 30)]
    return [*drawn, 0.0, -0.0, 9999999.0, 0.000999, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308]


def answers(text: str, values: Sequence[float]) -> list[Any]:
    """What `text` over the column f answers to each value."""
    input = pa.table({"c0": pa.array(values, pa.float64())})
    with duckdb.connect(config=SETTINGS) as connection:
        connection.register("input", input)
        rendered = render(compiled(text, {"f": (DOUBLE, "")}))
        return [row[0] for row in connection.execute(f"SELECT {rendered} FROM input").fetchall()]


def java(x: float) -> str:
    """Double.toString."""
    if not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
    if x == 0:
        return str(x)
    sign, number = "-" if x < 0 else "", Decimal(repr(abs(x))).normalize()
    digits = "".join(map(str, number.as_tuple().digits))
    if 1e-3 <= abs(x) < 1e7:
        plain = format(number, "f")
        return sign + (plain if "." in plain else plain + ".0")
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{number.adjusted()}"


def test_a_double_is_written_as_java_writes_it():
    values = doubles()
    assert answers("CAST(f AS STRING)", values) == [java(x) for x in values]


def test_a_double_is_read_back_from_its_text():
    values = [x for x in doubles() if not math.isnan(x)]
    assert answers("CAST(CAST(f AS STRING) AS DOUBLE)", values) == values


@pytest.mark.parametrize("digits", [-20, -2, 0, 1, 5, 17])
@pytest.mark.parametrize(("function", "rounding"), [("ROUND", ROUND_HALF_UP), ("TRUNCATE", ROUND_DOWN)])
def test_a_double_is_rounded_by_its_decimal_text(function, rounding, digits):
    values = [x for x in doubles() if math.isfinite(x) and abs(x) < 1e30]
    wanted = [
        float(Decimal(repr(x)).quantize(Decimal(1).scaleb(-digits), rounding=rounding, context=EXACT)) for x in values
    ]
    assert answers(f"{function}(f, {digits})", values) == wanted


def numbers(rng: random.Random, precision: int, scale: int, count: int) -> list[Decimal]:
    """Decimals of a type, of many lengths."""
    lengths = [rng.choice((precision, precision, max(1, precision // 2), max(1, scale), 1)) for _ in range(count)]
    return [Decimal(rng.randint(-(10**n) + 1, 10**n - 1)).scaleb(-scale) for n in lengths]


OPERATIONS = {
    "+": lambda a, b: EXACT.add(a, b),
    "-": lambda a, b: EXACT.subtract(a, b),
    "*": lambda a, b: EXACT.multiply(a, b),
    "/": lambda a, b: EXACT.divide(a, b),
    "%": lambda a, b: EXACT.remainder(a, b),
}
TYPES = [
    (10, 2, 10, 2),
    (18, 2, 18, 4),
    (5, 3, 19, 0),
    (38, 18, 38, 18),
    (38, 2, 10, 2),
    (38, 10, 20, 4),
    (15, 14, 32, 14),
    (12, 0, 38, 30),
    (38, 14, 24, 8),
    (2, 0, 28, 21),
]


@pytest.mark.parametrize("shape", TYPES, ids=str)
@pytest.mark.parametrize("operator", OPERATIONS)
def test_decimals_are_exact_or_the_row_fails(operator, shape):
    rng = random.Random(str(shape))
    p, s, q, t = shape
    left, right = types.Decimal(p, s), types.Decimal(q, t)
    rows = [(a, b) for a, b in zip(numbers(rng, p, s, 60), numbers(rng, q, t, 60), strict=True) if b]
    expression = compiled(f"a {operator} b", {"a": (left, ""), "b": (right, "")})
    result = expression.type
    assert isinstance(result, types.Decimal)
    input = pa.table(
        {
            "c0": pa.array([a for a, _ in rows], types.arrow(left)),
            "c1": pa.array([b for _, b in rows], types.arrow(right)),
        }
    )
    with duckdb.connect(config=SETTINGS) as connection:
        connection.register("input", input)
        found = connection.execute(f"SELECT TRY({render(expression)}) FROM input").fetchall()
    unit = Decimal(1).scaleb(-result.scale)
    wanted = [OPERATIONS[operator](a, b).quantize(unit, rounding=ROUND_HALF_UP, context=EXACT) for a, b in rows]
    computed = [(got, want) for (got,), want in zip(found, wanted, strict=True) if got is not None]
    assert all(got == want for got, want in computed)
    if max(p, q) <= 20:
        assert len(computed) == len(rows)
