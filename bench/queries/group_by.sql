-- What each account paid so far, corrected with every payment.
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
  'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE TABLE results (
  account BIGINT,
  n BIGINT,
  total DOUBLE
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
SELECT account, COUNT(*) AS n, SUM(amount) AS total
FROM payments
GROUP BY account;
