"""A stream of orders that goes on while things happen to the cluster, and what must have come out of it."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

from tests.brokers import Broker, MakeTopic
from tests.kubernetes.waiting import until
from tests.spark.orders import expected, orders
from tests.spark.topics import debezium, feed, read, upserted

Answer = dict[str, list[tuple[Any, ...]]]


class Orders:
    """Orders in a topic of their own, totals by user (upsert) and users by how much they have spent (with retractions)
    in two others. `pipeline` computes these from those."""

    def __init__(self, kafka: Broker, make_topic: MakeTopic) -> None:
        self._bootstrap = kafka.bootstrap
        self._source = make_topic("orders")
        self._totals = make_topic("totals", cleanup_policy="compact")
        self._spread = make_topic("spread")
        self._large = make_topic("large", cleanup_policy="compact")
        self._fed = 0

    @property
    def pipeline(self) -> str:
        """The pipeline, without a word on where Kafka is."""
        return f"""
        SET 'pipeline.name' = 'orders';
        CREATE TABLE orders (id BIGINT, `user` STRING, amount BIGINT)
          WITH ('connector' = 'kafka', 'topic' = '{self._source}', 'scan.startup.mode' = 'earliest-offset',
                'format' = 'json');
        CREATE TABLE totals (`user` STRING, n BIGINT, total BIGINT, PRIMARY KEY (`user`) NOT ENFORCED)
          WITH ('connector' = 'upsert-kafka', 'topic' = '{self._totals}', 'key.format' = 'json',
                'value.format' = 'json');
        CREATE TABLE spread (bracket BIGINT, users BIGINT, highest BIGINT)
          WITH ('connector' = 'kafka', 'topic' = '{self._spread}', 'format' = 'debezium-json');
        CREATE VIEW by_user AS SELECT `user`, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY `user`;
        EXECUTE STATEMENT SET BEGIN
          INSERT INTO totals SELECT * FROM by_user;
          INSERT INTO spread SELECT total / 5000, COUNT(*), MAX(total) FROM by_user GROUP BY total / 5000;
        END;
        """

    @property
    def incompatible_pipeline(self) -> str:
        """Another query over the same tables: it cannot go on with the state of the first."""
        return self.pipeline.replace("COUNT(*) AS n", "COUNT(DISTINCT amount) AS n")

    @property
    def larger_pipeline(self) -> str:
        """The same query with a table and an operator that are new, which have to be filled."""
        table = f"""
        CREATE TABLE large (`user` STRING, n BIGINT, PRIMARY KEY (`user`) NOT ENFORCED)
          WITH ('connector' = 'upsert-kafka', 'topic' = '{self._large}', 'key.format' = 'json',
                'value.format' = 'json');
        CREATE VIEW"""
        insert = "INSERT INTO large SELECT `user`, COUNT(*) FROM orders WHERE amount > 500 GROUP BY `user`;"
        return self.pipeline.replace("CREATE VIEW", table).replace("END;", f"{insert} END;")

    def feed(self, count: int) -> None:
        """Let `count` more orders come."""
        feed(self._bootstrap, self._source, islice(orders(self._fed + count), self._fed, None))
        self._fed += count

    def written(self) -> int:
        """How many changes have been committed so far."""
        return sum(len(read(self._bootstrap, topic)) for topic in (self._totals, self._spread))

    def until_answered(self, explain: Any = str, seconds: float = 240) -> None:
        """Wait until the answer is that of a batch query over all orders so far. A change that takes back what is not
        there fails at once."""
        right = {name: rows for name, rows in expected(self._fed).items() if name != "windows"}
        until(f"the answer over {self._fed} orders", lambda: self._answer() == right, seconds, explain, every=1)

    def until_backfilled(self, explain: Any = str, seconds: float = 240) -> None:
        """Wait until the table that is new in the larger pipeline has the answer over all orders so far."""
        right = Counter(row["user"] for _, row in orders(self._fed) if row["amount"] > 500)
        until(f"the new table has {self._fed} orders", lambda: self._filled() == right, seconds, explain, every=1)

    def _filled(self) -> dict[str, int]:
        return {row["user"]: row["n"] for row in upserted(read(self._bootstrap, self._large)).values()}

    def _answer(self) -> Answer:
        totals = upserted(read(self._bootstrap, self._totals)).values()
        spread = debezium(read(self._bootstrap, self._spread))
        return {
            "totals": sorted((r["user"], r["n"], r["total"]) for r in totals),
            "spread": sorted((r["bracket"], r["users"], r["highest"]) for r in spread),
        }
