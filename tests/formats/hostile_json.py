"""Records as no sane producer writes them, for tables of columns of every type; always the same ones for a seed."""

from __future__ import annotations

import json
from random import Random

from service.plan import types as t

NUMBERS = [
    *("0", "-0", "1", "-0.0", "0e5", "7", "5.0", "1e2", "1E+2", "1.50", "100", "12345678.12345678", "-1e2"),
    *("1e400", "1e-400", "1e308", "3.5e38", "1e38", "5e-324", "0.100000000000000005", "5.00000000000000000001"),
    *("9007199254740993", "9007199254740992.0", "4503599627370497.7", "9223372036854775808", "18446744073709551616"),
    *("128", "2147483648", "123456789012345678901234567890", "9" * 400, "1e1000000", "3.4028235e38"),
    *("100000000000000000001e-10", "99999999999999999999e-10", "123456789012345678e-3", "2.7E-8", "1E+20"),
    *("1.0000000596046448", "16777217", "1." + "0" * 40 + "1"),
]
NO_NUMBERS = [
    *("01", "-01", "00", "1.", "-", ".5", "+1", "1e", "0x10", "1_0", "NaN", "nan", "-nan", "NAN", "Infinity", "INF"),
    *("-inf", "infinity", "+Infinity", "tru", "TRUE", "None", "'a'"),
]
WORDS = [
    *("", " ", " 5 ", "+5", "+-5", "\t5\n", "\u00a05", "٥", "5.", ".5", "1__0", "1_", "true", " TRUE", "yes", "null"),
    *("2020-01-01", "2020-02-30", "2020-1-1", "0000-01-01", "9999-12-31", "10000-01-01", "0044-03-15 (BC)", "epoch"),
    *(
        "2020-01-01 12:00:00",
        "2020-01-01T12:00:00",
        "2020-01-01 24:00:00",
        "0000-01-01 00:00:00",
        "12:30:00",
        "24:00:00",
    ),
    *("2020-01-01 12:00:00.123456789Z", "2020-01-01 12:00", "12:30:00.1234567", "12:30", "1:30:00", "12:30:60"),
    *("aGk=", "aGk", "aG k=", "1e400000", "é", "😀", '{"a":1}', "[1]", "1,}", '"k":1.50', "\x7f", "\u2028"),
]
STRINGS = [
    *(json.dumps(word, ensure_ascii=False) for word in [*NUMBERS, *NO_NUMBERS, *WORDS]),
    *(
        '"\\/"',
        '"\\u0035"',
        '"\\u002b-5"',
        '"\\ud83d\\ude00"',
        '"\\ud83d"',
        '"\\ude00\\ud83d"',
        '"\\\\ud83d"',
        '"a\tb"',
    ),
    *('"\\u0000"', '"\\x41"', '"\\u00"', '"2020\\u002d01-01"'),
]
OTHERS = [
    *(
        "true",
        "false",
        "null",
        "{}",
        "[]",
        "[1]",
        "[1,null]",
        '["1"]',
        "[1.5]",
        "[-0]",
        "[NaN]",
        "[nan]",
        "[1,]",
        "{,}",
    ),
    *('{"x":1}', '{"x":true}', '{"x":1,"x":2}', '{"x":"1","y":"b"}', '{"y":1.50}', '{"X":1}', '{"\\u0078":3}'),
    *('{"x":nan}', '{"z":nan}', '{"z":[1,]}', '{"x":{"x":1}}', '[{"x":1}]', '{"x" : 5.0 , "y" : "b" }', '{"x":-0}'),
    *('{"a\\/b":1}', '{"":1}', '{"\\ud83d":1}', '{"a":1,"a":null}'),
]
NAMES = ("k", "n", "a/b", "é", 'q"t', "x.y", "k2", "ключ")
INNER = t.Row(("x", "y"), (t.INT, t.STRING))
FLAT: list[t.DataType] = [
    *(t.STRING, t.Text(3), t.TINYINT, t.INT, t.BIGINT, t.FLOAT, t.DOUBLE, t.BOOLEAN, t.BYTES, t.DATE),
    *(t.Decimal(10, 2), t.Decimal(38, 18), t.Decimal(20, 0), t.Time(0), t.Time(3)),
    *(t.Timestamp(0), t.Timestamp(3), t.Timestamp(6), t.TimestampLtz(3)),
]
NESTED: list[t.DataType] = [
    *(INNER, t.Row(("x",), (t.DOUBLE,)), t.Row(("x", "k"), (INNER, t.INT))),
    *(t.Array(t.INT), t.Array(t.FLOAT), t.Array(t.STRING), t.Array(INNER), t.Array(t.Array(t.INT))),
    *(t.Map(t.STRING, t.INT), t.Map(t.STRING, t.DOUBLE), t.Map(t.STRING, INNER)),
]


def columns(chance: Random) -> tuple[tuple[str, ...], tuple[t.DataType, ...]]:
    """Names and types of a table: of few columns as a rule, and at times of enough that keys are counted."""
    count = chance.choice([1, 1, 2, 3, 6, 26])
    pool = NAMES if count <= len(NAMES) else (*NAMES, *(f"c{i}" for i in range(20)))
    names = tuple(chance.sample(pool, count))
    return names, tuple(chance.choice(FLAT if chance.random() < 0.75 else NESTED) for _ in names)


def record(chance: Random, names: tuple[str, ...], types: tuple[t.DataType, ...], odd: float) -> str:
    """A record, each part of which is odd with about that probability."""
    members = []
    for name, type_ in zip(names, types, strict=True):
        drawn = chance.random()
        if drawn < 0.2 * odd:
            continue
        members.append((_key(chance, name, odd), "null" if drawn < 0.3 * odd else _value(chance, type_, odd)))
        if chance.random() < 0.15 * odd:
            members.append((_key(chance, name, 1), _value(chance, type_, odd)))
    if chance.random() < 0.3 * odd:
        key = chance.choice(['"z"', '"K"', '"k\\""', '"k:"', '"k\\u0000"', '"\\ud83d"', '"x"'])
        members.append((key, chance.choice([*NUMBERS, *NO_NUMBERS, *OTHERS])))
    if chance.random() < 0.3 * odd:
        chance.shuffle(members)
    blank = chance.choice([" ", "\t", "\r\n"]) if chance.random() < 0.2 * odd else ""
    text = f"{{{blank}" + f",{blank}".join(f"{k}{blank}:{blank}{v}{blank}" for k, v in members) + f"}}{blank}"
    return _hurt(chance, text) if chance.random() < 0.1 * odd else text


def _key(chance: Random, name: str, odd: float) -> str:
    """A key as JSON may write it."""
    if chance.random() >= odd / 2:
        return json.dumps(name, ensure_ascii=False)
    letters = [
        f"\\u{ord(letter):04{chance.choice('xX')}}"
        if chance.random() < 0.4
        else json.dumps(letter, ensure_ascii=False)[1:-1]
        for letter in name
    ]
    return '"' + "".join(letters).replace("/", chance.choice(["/", "\\/"])) + '"'


def _value(chance: Random, type_: t.DataType, odd: float) -> str:
    return (
        chance.choice(chance.choice([NUMBERS, NO_NUMBERS, STRINGS, OTHERS]))
        if chance.random() < odd
        else _usual(chance, type_)
    )


def _usual(chance: Random, type_: t.DataType) -> str:
    number = chance.randrange(-3, 50)
    match type_:
        case t.Row(names, types):
            return "{" + ",".join(f'"{n}":{_usual(chance, i)}' for n, i in zip(names, types, strict=True)) + "}"
        case t.Array(element):
            return "[" + ",".join(_usual(chance, element) for _ in range(chance.randrange(3))) + "]"
        case t.Map(_, value):
            return "{" + ",".join(f'"{k}":{_usual(chance, value)}' for k in "ab"[: chance.randrange(3)]) + "}"
        case t.Simple("TINYINT" | "INT" | "BIGINT"):
            return str(number)
        case t.Simple("FLOAT" | "DOUBLE") | t.Decimal():
            return chance.choice([str(number), str(number / 4)])
        case t.Simple("BOOLEAN"):
            return chance.choice(["true", "false"])
        case t.Simple("DATE"):
            return f'"2020-01-{number % 28 + 1:02}"'
        case t.Simple("BYTES"):
            return '"aGk="'
        case t.Time():
            return f'"12:30:{number % 60:02}"'
        case t.Timestamp() | t.TimestampLtz():
            return f'"2020-01-01 12:30:{number % 60:02}{"Z" if isinstance(type_, t.TimestampLtz) else ""}"'
        case _:
            return f'"t{number}"'


def _hurt(chance: Random, text: str) -> str:
    """A record that has been damaged, or is none."""
    place = chance.randrange(len(text))
    return chance.choice(
        [
            *(
                text + "}",
                text[:-1],
                text + " x",
                text + "\0",
                text + "{}",
                text[:-1] + ",}",
                f"[{text}]",
                text + "//c",
            ),
            *("\ufeff" + text, "\x0b" + text, text + "\u00a0", "", " ", "null", "1", "[]", "{", "{}", " {} "),
            text[:place] + chance.choice('{}[],:"\\0e.- x') + text[place + chance.randrange(2) :],
        ]
    )
