-- Lists over the rows before each row, with a separator: in the order of event time.

CREATE TABLE payments (
  id BIGINT,
  who STRING,
  amount DOUBLE,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'payments', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE lists (
  id BIGINT,
  names STRING,
  lately STRING,
  ids STRING,
  amounts STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'lists',
  'format' = 'json'
);

INSERT INTO lists
SELECT
  id,
  LISTAGG(who, '{;}') OVER (ORDER BY ts),
  LISTAGG(who, '; ') OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW),
  JSON_ARRAYAGG(id) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW),
  JSON_ARRAYAGG(amount NULL ON NULL) OVER (ORDER BY ts)
FROM payments;
