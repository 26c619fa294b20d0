"""However a file is garbled, it is read, or its mistakes are reported with places inside the garbled statement."""

from __future__ import annotations

from random import Random

import pytest

from service.sql.parse.dialect import tokenize
from service.sql.pipeline import PipelineErrors, read
from tests.sql.outline import TABLES

STATEMENTS = [
    "CREATE TABLE z (id BIGINT NOT NULL, b ROW<x INT, y ARRAY<STRING>>, c AS id + 1,"
    " ts TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,"
    " PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'print')",
    "EXPLAIN SELECT who, SUM(amount) AS s FROM pay WHERE id > 1 GROUP BY who HAVING COUNT(*) > 1",
    "EXPLAIN SELECT window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE pay, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
    " GROUP BY window_start, window_end",
    "EXPLAIN SELECT TUMBLE_END(ts, INTERVAL '1' HOUR) FROM pay GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)",
    "EXPLAIN SELECT MAX(id) OVER w FROM pay WINDOW w AS"
    " (PARTITION BY who ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "EXPLAIN SELECT p.id FROM pay p, ship s WHERE p.id = s.pay_id AND s.ts BETWEEN p.ts AND p.ts + INTERVAL '4' HOUR",
    "EXPLAIN SELECT /*+ STATE_TTL('a' = '1d') */ a2 FROM a LEFT JOIN b ON a1 = b1 WHERE a3 NOT IN (SELECT b2 FROM b)",
    "EXPLAIN WITH x (k) AS (SELECT a1 FROM a) SELECT DISTINCT k FROM x UNION ALL SELECT CAST(b3 AS INT) FROM b",
    "INSERT INTO a (a1, a2) SELECT a1, CASE WHEN a2 > 1 THEN 1 ELSE a3 END FROM a",
]
WORDS = [
    *("SELECT", "FROM", "(", ")", ",", "a1", "who", "ts", "GROUP BY", "'x'", "1", "INTERVAL '1' HOUR", "OVER", "NULL"),
    *("AS", "JOIN", "=", "*", "TUMBLE", "COUNT(*)", "WHERE", "NOT", "IN", "BETWEEN", "AND", "UNION", "CASE", "END"),
    *("DISTINCT", "x.y", "DESCRIPTOR(ts)", "TABLE", "WITH", "ROW", "ARRAY[1]", "[1]", "CAST(1 AS INT)", "."),
]


def garbled(statement: str, random: Random) -> str:
    words = [statement[t.start : t.end + 1] for t in tokenize(statement)]
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(words))
        match random.randrange(4):
            case 0:
                del words[place]
            case 1:
                words[place] = random.choice(WORDS)
            case 2:
                words.insert(place, random.choice(WORDS))
            case _:
                other = random.randrange(len(words))
                words[place], words[other] = words[other], words[place]
    return " ".join(words)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_garbled_statement_is_refused_with_what_is_wrong(statement: str):
    random = Random(statement)
    for _ in range(12):
        text = garbled(statement, random)
        try:
            read(f"{TABLES}{text};")
        except PipelineErrors as errors:
            for mistake in errors.mistakes:
                assert mistake.place.line == TABLES.count("\n") + 1, (text, str(mistake))
                assert "\0" not in str(mistake), (text, str(mistake))
                assert "sqlglot" not in str(mistake), (text, str(mistake))
