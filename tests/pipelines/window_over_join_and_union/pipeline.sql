-- Windows over an interval join, whose rows carry two times, and over a union of views.

CREATE TABLE orders (id BIGINT, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
WITH ('connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');

CREATE TABLE payments (id BIGINT, paid BIGINT, `at` TIMESTAMP(3), WATERMARK FOR `at` AS `at`)
WITH ('connector' = 'kafka', 'topic' = 'payments', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');

CREATE TABLE paid (starts TIMESTAMP(3), ends TIMESTAMP(3), orders BIGINT, paid BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'paid', 'format' = 'json');

CREATE TABLE moves (window_start TIMESTAMP(3), kind STRING, n BIGINT, amount BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'moves', 'format' = 'json');

CREATE VIEW matched AS
SELECT o.id, o.amount, p.paid, o.ts, p.`at`
FROM orders AS o JOIN payments AS p ON o.id = p.id AND p.`at` BETWEEN o.ts AND o.ts + INTERVAL '10' MINUTE;

CREATE VIEW `both` AS
SELECT 'order' AS kind, amount, ts FROM orders
UNION ALL
SELECT 'payment' AS kind, paid AS amount, `at` AS ts FROM payments;

EXECUTE STATEMENT SET BEGIN
INSERT INTO paid
SELECT TUMBLE_START(ts, INTERVAL '1' HOUR), TUMBLE_END(ts, INTERVAL '1' HOUR), COUNT(DISTINCT id), SUM(paid)
FROM matched
GROUP BY TUMBLE(ts, INTERVAL '1' HOUR);

INSERT INTO moves
SELECT window_start, kind, COUNT(*), SUM(amount)
FROM TABLE(TUMBLE(TABLE `both`, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, kind;
END;
