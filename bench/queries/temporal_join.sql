-- Each order with the version of its account at the time of the order.
CREATE TABLE accounts (
  account BIGINT,
  tier BIGINT,
  ms BIGINT,
  ts AS TO_TIMESTAMP_LTZ(ms, 3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
  PRIMARY KEY (account) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = '${ACCOUNTS}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'properties.group.id' = '${GROUP}',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = '${FROM}',
  'scan.bounded.mode' = '${UNTIL}',
  'format' = 'debezium-json'
);

CREATE TABLE results (
  id BIGINT,
  account BIGINT,
  amount DOUBLE,
  tier BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${OUTPUT}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = '${GROUP}',
  'properties.transaction.timeout.ms' = '600000',
  'format' = 'json'
);

INSERT INTO results
SELECT o.id, o.account, o.amount, a.tier
FROM orders AS o
LEFT JOIN accounts FOR SYSTEM_TIME AS OF o.ts AS a ON o.account = a.account;
