-- Each order with its shipment, if that comes within five seconds.
INSERT INTO results
SELECT o.id, o.account, o.amount, s.carrier
FROM orders AS o
JOIN shipments AS s ON o.id = s.order_id AND s.ts BETWEEN o.ts AND o.ts + INTERVAL '5' SECOND;
