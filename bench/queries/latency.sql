-- How often each payment came and when it was sent last: one result a row, so that the delay of every row shows.
CREATE TABLE payments (
  id BIGINT,
  account BIGINT,
  amount DOUBLE,
  ms BIGINT,
  ts AS TO_TIMESTAMP_LTZ(ms, 3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = '${PAYMENTS}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'properties.group.id' = '${GROUP}',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE TABLE results (
  id BIGINT,
  n BIGINT,
  sent BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${OUTPUT}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = '${GROUP}',
  'properties.transaction.timeout.ms' = '600000',
  'format' = 'debezium-json'
);

INSERT INTO results
SELECT id, COUNT(*) AS n, MAX(ms) AS sent
FROM payments
GROUP BY id;
