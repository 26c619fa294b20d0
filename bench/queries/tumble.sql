-- What each account paid in each ten seconds.
INSERT INTO results
SELECT account, COUNT(*) AS n, SUM(amount) AS total, window_start, window_end
FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY account, window_start, window_end;
