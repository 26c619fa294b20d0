-- What each account paid in each day: a window that stays open.
INSERT INTO results
SELECT account, COUNT(*) AS n, SUM(amount) AS total, window_start, window_end
FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(ts), INTERVAL '1' DAY))
GROUP BY account, window_start, window_end;
