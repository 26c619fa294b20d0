-- Each order with its shipment, if both are of the same ten seconds.
CREATE TABLE results (
  window_start TIMESTAMP(3),
  id BIGINT,
  account BIGINT,
  amount DOUBLE,
  carrier BIGINT
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
SELECT o.window_start, o.id, o.account, o.amount, s.carrier
FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) AS o
JOIN (SELECT * FROM TABLE(TUMBLE(TABLE shipments, DESCRIPTOR(ts), INTERVAL '10' SECOND))) AS s
ON o.id = s.order_id AND o.window_start = s.window_start AND o.window_end = s.window_end;
