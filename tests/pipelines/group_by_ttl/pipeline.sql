-- State that was not written for an hour of processing time is forgotten: the group starts over.

SET 'table.exec.state.ttl' = '1 h';

CREATE TABLE orders (
  user_id STRING,
  amount BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE totals (
  user_id STRING,
  total BIGINT,
  PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'totals',
  'format' = 'debezium-json'
);

INSERT INTO totals
SELECT user_id, SUM(amount) FROM orders GROUP BY user_id;
