"""The moments that variances and deviations are computed from: the sum of values, and of their squares.

Law: a moment is a STRUCT of two DOUBLEs, a sum `high` and what rounding has lost of it, `low`. A sum of squares is far
larger than the variance, and a single DOUBLE would lose the digits that count; two hold about 106 bits, and a value
that is retracted leaves nothing of itself. Squares are not rounded either: a product of two DOUBLEs is its rounded
value and its error, which is a DOUBLE too (Dekker).
"""

from __future__ import annotations

import pyarrow as pa

from operators.aggregates.accumulator import Accumulator, Argument
from operators.names import WEIGHT
from operators.sql_text import comma

_SPLITTER = 2**27 + 1
"""A DOUBLE times this yields its upper 26 bits (Veltkamp)."""

_HUGE = 1e140
"""Squares of smaller values have sums, and these squares, that are no Infinity for any number of rows."""

_TINY = 1e-290
"""What is cut off of values that are smaller would be no DOUBLE."""

_HALF = 2**32
"""A BIGINT is squared in parts below this and above it, so that sums of their squares fit a HUGEINT."""

LOST = 1e-29
"""Less than this part of the squares is what rounding has left in two DOUBLEs: equal values have no variance."""

_MOMENT = pa.struct([("high", pa.float64()), ("low", pa.float64())])


def moments(argument: Argument) -> Accumulator:
    """Return the sum, and the sum of the squares, of those of the argument's values that are `tamed`."""
    if pa.types.is_integer(argument.type):
        create = _of_integers(argument)
    elif argument.over:
        create = _of_frame(argument)
    else:
        create = _of_added(argument) if argument.append else _of_changes(argument)
    both = _sum_of("{a%d}.high", "{b%d}.high", "{a%d}.low + {b%d}.low")
    merge = "CASE WHEN {a%d} IS NULL THEN {b%d} WHEN {b%d} IS NULL THEN {a%d} ELSE " + both + " END"
    many = (
        f"LIST({{%d}}) FILTER (WHERE {{%d}} IS NOT NULL), lambda a, b: {_sum_of('a.high', 'b.high', 'a.low + b.low')}"
    )
    return Accumulator(
        create=create,
        combine=tuple(f"LIST_REDUCE({many.replace('%d', str(i))})" for i in (0, 1)),
        merge=tuple(merge.replace("%d", str(i)) for i in (0, 1)),
        types=(_MOMENT, _MOMENT),
    )


def tamed(x: str) -> str:
    """Return the condition of a value that has a finite square: neither NaN nor Infinity nor one that is too large."""
    return f"ABS({_double(x)}) < {_HUGE}"


def untamed(x: str) -> str:
    """Return the condition of all other values, which are counted: with one of them there is no variance."""
    return f"NOT ({tamed(x)})"


def moments_of_list(values: str) -> tuple[str, str]:
    """Return the sum, and the sum of the squares, of a list of DOUBLEs."""
    squares, lost = (f"LIST_TRANSFORM({values}, lambda v: {text})" for text in ("v * v", _error("v", "v")))
    return _total(values), _total(squares, f"COALESCE(LIST_AGGREGATE({lost}, 'fsum'), 0)")


def spread(count: str, total: str, squares: str) -> tuple[str, str, str, str]:
    """Return the count times the sum of squares less the square of the sum, as the sum of four numbers: of the first
    two nearly all may cancel."""
    n, t, q = _double(count), f"{total}.high", f"{squares}.high"
    error = f"({_error(n, q)} + {n} * {squares}.low)"
    their_error = f"-({_error(t, t)} + (2 * {t} + {total}.low) * {total}.low)"
    return f"{n} * {q}", f"-({t} * {t})", error, their_error


def _double(x: str) -> str:
    return f"CAST({x} AS DOUBLE)"


def let(name: str, value: str, text: str) -> str:
    """Return the `text` in which a name stands for a value that is computed once: DuckDB computes an expression as
    often as it is written, and sets each of them up whenever the statement runs."""
    return f"LIST_TRANSFORM([{value}], lambda {name}: {text})[1]"


def _moment(high: str, low: str) -> str:
    return f"struct_pack(high := {high}, low := {low})"


def _sum_of(x: str, y: str, lost: str = "0") -> str:
    """The moment x + y, of which `lost` has been lost before (Knuth)."""
    error = f"({x} - (({x} + {y}) - (({x} + {y}) - {x}))) + ({y} - (({x} + {y}) - {x}))"
    return _moment(f"{x} + {y}", f"({lost}) + ({error})")


def _upper(x: str) -> str:
    return f"({_SPLITTER} * {x} - ({_SPLITTER} * {x} - {x}))"


def _error(x: str, y: str) -> str:
    """What rounding takes from x * y."""
    a, b = _upper(x), _upper(y)
    return f"((({a} * {b} - {x} * {y}) + {a} * ({y} - {b}) + ({x} - {a}) * {b}) + ({x} - {a}) * ({y} - {b}))"


def _total(terms: str, lost: str = "0") -> str:
    """The sum of a list of DOUBLEs, of which `lost` has been lost before.

    Each is cut at a step so coarse that the upper parts are added up without rounding, in whatever order, and what
    remains is cut again (Rump, Ogita and Oishi); the remainder of that is added up as usual.
    """
    bits = "(CEIL(LOG2(LEN(terms) + 2)) + 1)"
    largest = f"GREATEST(LIST_MAX(LIST_TRANSFORM(terms, lambda t: ABS(t))), {_TINY})"
    step = f"POWER(2.0, CEIL(LOG2({largest})) + {bits})"
    finer = f"step * POWER(2.0, {bits} - 52)"
    below = "(t - ((step + t) - step))"
    parts = [
        "u := LIST_SUM(LIST_TRANSFORM(terms, lambda t: (step + t) - step))",
        f"v := LIST_SUM(LIST_TRANSFORM(terms, lambda t: (finer + {below}) - finer))",
        f"w := LIST_AGGREGATE(LIST_TRANSFORM(terms, lambda t: {below} - ((finer + {below}) - finer)), 'fsum')",
    ]
    summed = let("terms", terms, let("step", step, let("finer", finer, f"struct_pack({comma(parts)})")))
    both = f"struct_pack(s := {summed}, lost := {lost})"
    return let("m", both, f"CASE WHEN m.s.u IS NOT NULL THEN {_sum_of('m.s.u', 'm.s.v', 'm.s.w + m.lost')} END")


def _of_changes(argument: Argument) -> tuple[str, str]:
    """From all rows to their last digit: what is retracted later may be far larger than what then remains."""
    x, w, tame = _double(argument.text), _double(WEIGHT), tamed(argument.text)
    listed = argument.where(tame)
    square = f"({x} * {x})"
    lost = f"{_error(square, w)} + {_error(x, x)} * {w}"
    return (
        _total(f"LIST({x} * {w}){listed}", f"COALESCE({argument.call('FSUM', _error(x, w), tame)}, 0)"),
        _total(f"LIST({square} * {w}){listed}", f"COALESCE({argument.call('FSUM', lost, tame)}, 0)"),
    )


def _of_added(argument: Argument) -> tuple[str, str]:
    """From how far values lie from their mean: faster than from their squares, and as good where all of them stay."""
    rows = f"LIST({_double(argument.text)}){argument.where(tamed(argument.text))}"
    apart = "LIST_TRANSFORM(rows, lambda x: x - mean)"
    items = ["n := CAST(LEN(rows) AS DOUBLE)", "mean := mean", f"apart := {apart}"]
    centred = let("rows", rows, let("mean", "LIST_AVG(rows)", f"struct_pack({comma(items)})"))
    squares = "LIST_AGGREGATE(LIST_TRANSFORM(c.apart, lambda x: x * x), 'fsum')"
    items = ["n := c.n", "mean := c.mean", "apart := LIST_AGGREGATE(c.apart, 'fsum')", f"squares := {squares}"]
    return _around_mean(let("c", centred, f"struct_pack({comma(items)})"))


def _of_frame(argument: Argument) -> tuple[str, str]:
    """From the count, the mean and the variance of a frame as DuckDB has them: no rows could be listed for each row."""
    x, tame = _double(argument.text), argument.where(tamed(argument.text))
    n = f"CAST(COUNT({x}){tame} AS DOUBLE)"
    items = [
        f"n := {n}",
        f"mean := AVG({x}){tame}",
        "apart := CAST(0 AS DOUBLE)",
        f"squares := {n} * VAR_POP({x}){tame}",
    ]
    return _around_mean(f"struct_pack({comma(items)})")


def _around_mean(centred: str) -> tuple[str, str]:
    """Both moments of `n` values, from their `mean` and the sums of how far they are `apart` from it and of the
    `squares` of that."""
    whole, lost = "f.n * f.mean", _error("f.n", "f.mean")
    total = _sum_of(whole, "f.apart", lost)
    # The sum of squares is that around the mean, and the mean times the sum and once more what lies apart.
    through = f"{_error('f.whole', 'f.mean')} + f.mean * f.lost"
    squares = _sum_of("f.whole * f.mean", "f.squares", f"{through} + 2 * f.apart * f.mean")
    kept = comma(f"{name} := f.{name}" for name in ("mean", "apart", "squares"))
    held = f"struct_pack(whole := {whole}, lost := {lost}, {kept})"
    there = "CASE WHEN f.mean IS NOT NULL THEN {} END"
    return let("f", centred, there.format(total)), let("f", let("f", centred, held), there.format(squares))


def _of_integers(argument: Argument) -> tuple[str, str]:
    """The sums of whole numbers, exactly."""
    x = argument.text
    if argument.type == pa.int64():
        upper, lower = f"({x} // {_HALF})", f"CAST({x} % {_HALF} AS HUGEINT)"
        squares = [(_HALF**2, f"{upper} * {upper}"), (2 * _HALF, f"{upper} * {lower}"), (1, f"{lower} * {lower}")]
    else:
        squares = [(1, f"CAST({x} AS BIGINT) * {x}")]
    total = let("whole", _whole(argument, x), _moment(*_doubles("whole")))
    parts = comma(f"p{i} := {_whole(argument, text)}" for i, (_, text) in enumerate(squares))
    (high, low), *others = ([f"{unit} * {part}" for part in _doubles(f"w.p{i}")] for i, (unit, _) in enumerate(squares))
    squared = _moment(high, low)
    for other, lost in others:
        squared = let("s", squared, _sum_of("s.high", other, f"s.low + {lost}"))
    return _present(argument, total), _present(argument, let("w", f"struct_pack({parts})", squared))


def _whole(argument: Argument, text: str) -> str:
    weighted = text if argument.append else f"CAST({text} AS HUGEINT) * {WEIGHT}"
    return f"CAST({argument.call('SUM', weighted)} AS HUGEINT)"


def _doubles(whole: str) -> tuple[str, str]:
    """A HUGEINT as a DOUBLE, and what rounding loses of it."""
    rounded = _double(whole)
    return rounded, f"CAST({whole} - CAST({rounded} AS HUGEINT) AS DOUBLE)"


def _present(argument: Argument, text: str) -> str:
    return f"CASE WHEN {argument.call('COUNT', argument.text)} > 0 THEN {text} END"
