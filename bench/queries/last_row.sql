-- The last payment of each account, corrected with every payment.
INSERT INTO results
SELECT id, account, amount
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY account ORDER BY ts DESC) AS place FROM payments)
WHERE place = 1;
