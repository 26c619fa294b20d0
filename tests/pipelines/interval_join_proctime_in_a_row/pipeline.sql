-- PROCTIME() behind an interval join is the time at which a row comes out: nothing is late there, and no window answers twice.
CREATE TABLE orders (id BIGINT, ts TIMESTAMP(3), pt AS PROCTIME())
WITH ('connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE payments (id BIGINT, pt AS PROCTIME())
WITH ('connector' = 'kafka', 'topic' = 'payments', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE parcels (id BIGINT, pt AS PROCTIME())
WITH ('connector' = 'kafka', 'topic' = 'parcels', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE sent (id BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'sent', 'format' = 'json');
CREATE TABLE a_second (s TIMESTAMP_LTZ(3), n BIGINT, paid BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'a_second', 'format' = 'json');

-- Paid within ten seconds, and sent within two seconds after that.
INSERT INTO sent
SELECT o.id
FROM orders AS o
JOIN payments AS p ON p.id = o.id AND p.pt BETWEEN o.pt AND o.pt + INTERVAL '10' SECOND
JOIN parcels AS q ON q.id = o.id AND q.pt BETWEEN o.pt AND o.pt + INTERVAL '2' SECOND;

-- Orders without a payment come out ten seconds later than they came.
CREATE VIEW answered AS
SELECT o.id, p.id AS paid, o.pt
FROM orders AS o
LEFT JOIN payments AS p ON p.id = o.id AND p.pt BETWEEN o.pt AND o.pt + INTERVAL '10' SECOND;

INSERT INTO a_second
SELECT window_start, COUNT(*), COUNT(paid)
FROM TABLE(TUMBLE(TABLE answered, DESCRIPTOR(pt), INTERVAL '1' SECOND))
GROUP BY window_start, window_end;

-- A condition on that time is asked when the row comes out: this order was paid five seconds after it came.
CREATE TABLE slow (id BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'slow', 'format' = 'json');
INSERT INTO slow
SELECT id
FROM (
  SELECT o.id, o.ts, o.pt
  FROM orders AS o
  JOIN payments AS p ON p.id = o.id AND p.pt BETWEEN o.pt AND o.pt + INTERVAL '10' SECOND
) AS paid
WHERE CAST(pt AS TIMESTAMP(3)) > ts + INTERVAL '3' SECOND;
