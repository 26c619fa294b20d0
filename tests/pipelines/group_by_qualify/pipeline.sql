-- QUALIFY beside aggregates: the two clients that spent the most, by an aggregate that is not selected, by a name of the
-- list, and with a window that has a name; and of each ten seconds the client that ordered the most.

CREATE TABLE orders (
  client STRING,
  amount INT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');

CREATE TABLE best (
  client STRING,
  orders BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'best', 'format' = 'changelog-json');

CREATE TABLE named (
  client STRING,
  amount INT,
  place BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'named', 'format' = 'changelog-json');

CREATE TABLE busiest (
  ends TIMESTAMP(3),
  client STRING,
  orders BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'busiest', 'format' = 'json');

EXECUTE STATEMENT SET
BEGIN
INSERT INTO best
SELECT client, COUNT(*) FROM orders
GROUP BY client
QUALIFY ROW_NUMBER() OVER (ORDER BY SUM(amount) DESC) <= 2 AND COUNT(*) > 1;

INSERT INTO named
SELECT client, SUM(amount) AS amount, RANK() OVER w AS place FROM orders
GROUP BY client
HAVING COUNT(*) > 1
QUALIFY place <= 2
WINDOW w AS (ORDER BY SUM(amount) DESC);

INSERT INTO busiest
SELECT window_end, client, COUNT(*) FROM TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)
GROUP BY window_start, window_end, client
QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY COUNT(*) DESC, MAX(amount)) = 1;
END;
