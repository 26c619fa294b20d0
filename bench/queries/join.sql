-- Each order with its shipment, whenever that comes.
INSERT INTO results
SELECT o.id, o.account, o.amount, s.carrier
FROM orders AS o
JOIN shipments AS s ON o.id = s.order_id;
