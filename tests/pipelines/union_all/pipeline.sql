-- UNION ALL keeps every row of both inputs, equal ones too.

CREATE TABLE web (
  user_id STRING,
  amount BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'web', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE shop (
  user_id STRING,
  amount BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'shop', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE sales (
  origin STRING,
  user_id STRING,
  amount BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'sales',
  'format' = 'json'
);

INSERT INTO sales
SELECT 'web', user_id, amount FROM web
UNION ALL
SELECT 'shop', user_id, amount FROM shop WHERE amount > 0;
