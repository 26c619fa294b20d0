
SET 'table.exec.state.ttl' = '1 d';
CREATE TABLE orders (u STRING, amount BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at - INTERVAL '2' SECOND)
WITH ('connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'topic' = 'orders');
CREATE TABLE users (u STRING, city STRING) WITH ('connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'topic' = 'users');
CREATE TABLE totals (u STRING, total BIGINT, PRIMARY KEY (u) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json', 'topic' = 'totals');
CREATE TABLE cities (city STRING, n BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'cities', 'format' = 'debezium-json');
CREATE TABLE best (u STRING, total BIGINT) WITH ('connector' = 'kafka', 'topic' = 'best', 'format' = 'debezium-json');
CREATE TABLE minutes (u STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'minutes', 'format' = 'json');
CREATE VIEW paid AS SELECT u, amount FROM orders WHERE amount > 0;
EXECUTE STATEMENT SET BEGIN
INSERT INTO totals SELECT u, SUM(amount) AS total FROM paid GROUP BY u;
INSERT INTO cities SELECT city, COUNT(*) FROM paid JOIN users ON paid.u = users.u GROUP BY city;
INSERT INTO best SELECT u, total FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY total DESC) AS r FROM (SELECT u, SUM(amount) AS total FROM paid GROUP BY u))
  WHERE r <= 2;
INSERT INTO minutes SELECT u, COUNT(*) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '10' SECOND))
  GROUP BY u, window_start, window_end;
END;
