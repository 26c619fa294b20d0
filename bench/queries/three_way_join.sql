-- Each order with its shipment and its invoice, whenever these come.
CREATE TABLE invoices (
  order_id BIGINT,
  cents BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${INVOICES}',
  'properties.bootstrap.servers' = '${BOOTSTRAP}',
  'properties.group.id' = '${GROUP}',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = '${FROM}',
  'scan.bounded.mode' = '${UNTIL}',
  'format' = 'json'
);

CREATE TABLE results (
  id BIGINT,
  account BIGINT,
  amount DOUBLE,
  carrier BIGINT,
  cents BIGINT
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
SELECT o.id, o.account, o.amount, s.carrier, i.cents
FROM orders AS o
JOIN shipments AS s ON o.id = s.order_id
JOIN invoices AS i ON o.id = i.order_id;
