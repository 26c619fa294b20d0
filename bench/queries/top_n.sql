-- The three largest payments of each account, corrected with every payment.
INSERT INTO results
SELECT id, account, amount
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY account ORDER BY amount DESC, id) AS place FROM payments)
WHERE place <= 3;
