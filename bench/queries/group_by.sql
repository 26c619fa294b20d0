-- What each account paid so far, corrected with every payment.
INSERT INTO results
SELECT account, COUNT(*) AS n, SUM(amount) AS total
FROM payments
GROUP BY account;
