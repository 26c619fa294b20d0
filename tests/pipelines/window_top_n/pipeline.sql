-- Of each ten seconds: the two suppliers that sold the most, the two highest bids, and the last bid on each item.

CREATE TABLE bid (
  bidtime TIMESTAMP(3),
  price DECIMAL(10, 2),
  item STRING,
  supplier STRING,
  WATERMARK FOR bidtime AS bidtime - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'bid', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE suppliers (
  window_start TIMESTAMP(3),
  supplier STRING,
  total DECIMAL(38, 2),
  place BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'suppliers',
  'format' = 'json'
);

CREATE TABLE highest (
  window_end TIMESTAMP(3),
  item STRING,
  price DECIMAL(10, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'highest',
  'format' = 'json'
);

CREATE TABLE last_bids WITH ('topic' = 'last_bids') LIKE highest;

CREATE VIEW windows AS
SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '10' SECOND));

EXECUTE STATEMENT SET
BEGIN
INSERT INTO suppliers
SELECT window_start, supplier, total, place
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY total DESC) AS place
  FROM (
    SELECT window_start, window_end, supplier, SUM(price) AS total
    FROM windows
    GROUP BY window_start, window_end, supplier
  )
)
WHERE place <= 2;

INSERT INTO highest
SELECT window_end, item, price
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS place FROM windows
)
WHERE place <= 2;

INSERT INTO last_bids
SELECT window_end, item, price
FROM windows
QUALIFY ROW_NUMBER() OVER (PARTITION BY item, window_start, window_end ORDER BY bidtime DESC) = 1;
END;
