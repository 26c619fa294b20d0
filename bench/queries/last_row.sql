-- The last payment of each account, corrected with every payment.
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
  id BIGINT,
  account BIGINT,
  amount DOUBLE
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
SELECT id, account, amount
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY account ORDER BY ts DESC) AS place FROM payments)
WHERE place = 1;
