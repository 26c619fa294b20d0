"""The queries that users of Flink SQL and of its forerunner know from articles run in the form written there."""

from __future__ import annotations

import pytest

from service.plan.nodes import IntervalJoin, Join, Node, Over, WindowAggregate
from service.plan.walk import in_order
from service.sql.pipeline import read

WITH = "WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'b', 'format' = 'json');"

TABLES = f"""
CREATE TABLE tmall_item(
   itemID VARCHAR,
   itemType VARCHAR,
   onSellTime TIMESTAMP,
   price DOUBLE,
   WATERMARK onSellTime FOR onSellTime as withOffset(onSellTime, 0)
)
{WITH}
CREATE TABLE user_behavior (
    user_id BIGINT,
    item_id BIGINT,
    category_id BIGINT,
    behavior STRING,
    ts TIMESTAMP(3),
    -- both kinds of time
    proctime as PROCTIME(),
    WATERMARK FOR ts as ts - INTERVAL '5' SECOND
) {WITH}
CREATE TABLE A (a1 INT, a2 INT, a3 INT) {WITH}
CREATE TABLE B (b1 INT, b2 INT, b3 INT) {WITH}
CREATE TABLE Orders (id BIGINT, productId BIGINT, ordertime TIMESTAMP(3), WATERMARK FOR ordertime AS ordertime) {WITH}
CREATE TABLE Product (id BIGINT, name STRING) {WITH}
CREATE TABLE Shipments (orderId BIGINT, shiptime TIMESTAMP(3), WATERMARK FOR shiptime AS shiptime) {WITH}
"""

QUERIES: list[tuple[str, type[Node]]] = [
    (
        """
        SELECT
            itemID,
            itemType,
            onSellTime,
            price,
            MAX(price) OVER (
                PARTITION BY itemType
                ORDER BY onSellTime
                ROWS BETWEEN 2 preceding AND CURRENT ROW) AS maxPrice
          FROM tmall_item
        """,
        Over,
    ),
    (
        """
        SELECT
            itemID,
            itemType,
            onSellTime,
            price,
            MAX(price) OVER (
                PARTITION BY itemType
                ORDER BY onSellTime
                RANGE BETWEEN INTERVAL '2' MINUTE preceding AND CURRENT ROW) AS maxPrice
          FROM tmall_item
        """,
        Over,
    ),
    (
        """
        SELECT
            user_id,
            COUNT(behavior) AS behavior_cnt,
            TUMBLE_END(proctime, INTERVAL '1' MINUTE) AS end_ts
        FROM user_behavior
        GROUP BY user_id, TUMBLE(proctime, INTERVAL '1' MINUTE)
        """,
        WindowAggregate,
    ),
    (
        """
        SELECT
          TUMBLE_END(rowtime, INTERVAL '20' MINUTE),
            user_id,
            SUM(cnt)
        FROM (
            SELECT
                user_id,
                COUNT(behavior) AS cnt,
                TUMBLE_ROWTIME(ts, INTERVAL '10' SECOND) AS rowtime
            FROM user_behavior
            GROUP BY user_id, TUMBLE(ts, INTERVAL '10' SECOND)
          )
        GROUP BY TUMBLE(rowtime, INTERVAL '20' MINUTE), user_id
        """,
        WindowAggregate,
    ),
    (
        """
        SELECT
            user_id,
            behavior,
            COUNT(*) OVER w AS behavior_count,
            ts
        FROM user_behavior
        WINDOW w AS (
            PARTITION BY user_id
            ORDER BY ts
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
        """,
        Over,
    ),
    (
        """
        SELECT
            user_id,
            COUNT(*) OVER w AS behavior_count,
            ts
        FROM user_behavior
        WINDOW w AS (
            PARTITION BY user_id
            ORDER BY ts
            RANGE BETWEEN INTERVAL '2' SECOND PRECEDING AND CURRENT ROW
        )
        """,
        Over,
    ),
    ("SELECT a1, b1 FROM A JOIN B ON a1 = b1 and a2 > b2", Join),
    (
        """
        SELECT * FROM Orders
        INNER JOIN Product
        ON Orders.productId = Product.id
        """,
        Join,
    ),
    (
        """
        SELECT *
        FROM
        Orders o,
        Shipments s
        WHERE
        o.id = s.orderId AND
        s.shiptime BETWEEN o.ordertime AND o.ordertime + INTERVAL '4' HOUR
        """,
        IntervalJoin,
    ),
]


@pytest.mark.parametrize(("query", "kind"), QUERIES)
def test_a_query_of_the_articles_resolves(query: str, kind: type[Node]):
    (job,) = read(f"{TABLES} EXPLAIN {query}").explains
    assert any(isinstance(node, kind) for node in in_order(job.sinks))
