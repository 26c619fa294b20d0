-- What each account paid in each session, which ends a second after its last payment.
INSERT INTO results
SELECT account, COUNT(*) AS n, SUM(amount) AS total, window_start, window_end
FROM TABLE(SESSION(TABLE payments PARTITION BY account, DESCRIPTOR(ts), INTERVAL '1' SECOND))
GROUP BY account, window_start, window_end;
