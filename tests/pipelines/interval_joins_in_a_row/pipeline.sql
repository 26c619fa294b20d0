-- Two interval joins in a row, a window over their result; semi and anti joins by time; joins in processing time.

CREATE TABLE orders (
  id BIGINT,
  ts TIMESTAMP(3),
  pt AS PROCTIME(),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');

CREATE TABLE payments (
  id BIGINT,
  amount INT,
  ts TIMESTAMP(3),
  pt AS PROCTIME(),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'payments', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');

CREATE TABLE shipments (
  id BIGINT,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'kafka', 'topic' = 'shipments', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');

CREATE VIEW shipped AS
SELECT o.id, o.ts, p.amount
FROM orders AS o
JOIN payments AS p ON p.id = o.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL '5' SECOND
JOIN shipments AS s ON s.id = p.id AND s.ts BETWEEN o.ts AND o.ts + INTERVAL '8' SECOND;

CREATE TABLE revenue (since TIMESTAMP(3), shipped BIGINT, amount INT) WITH (
  'connector' = 'kafka', 'topic' = 'revenue', 'format' = 'json'
);

CREATE TABLE paid (id BIGINT) WITH ('connector' = 'kafka', 'topic' = 'paid', 'format' = 'json');

CREATE TABLE unpaid (id BIGINT) WITH ('connector' = 'kafka', 'topic' = 'unpaid', 'format' = 'json');

CREATE TABLE seen (id BIGINT, amount INT) WITH ('connector' = 'kafka', 'topic' = 'seen', 'format' = 'json');

EXECUTE STATEMENT SET BEGIN

INSERT INTO revenue
SELECT window_start, COUNT(*), SUM(amount)
FROM TABLE(TUMBLE(TABLE shipped, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end;

INSERT INTO paid
SELECT id FROM orders AS o
WHERE EXISTS (
  SELECT * FROM payments AS p WHERE p.id = o.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL '5' SECOND
);

INSERT INTO unpaid
SELECT id FROM orders AS o
WHERE NOT EXISTS (
  SELECT * FROM payments AS p WHERE p.id = o.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL '5' SECOND
);

INSERT INTO seen
SELECT o.id, p.amount
FROM orders AS o
LEFT JOIN payments AS p ON p.id = o.id AND p.pt BETWEEN o.pt AND o.pt + INTERVAL '2' SECOND;

END;
