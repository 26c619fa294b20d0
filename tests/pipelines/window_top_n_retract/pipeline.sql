-- Of each ten seconds, over bids that are changed and withdrawn: the two highest bids, the last bid on each item, and
-- where each bid stands. A window is ranked once, when it closes, as its bids are then.

CREATE TABLE bid (
  id INT,
  bidtime TIMESTAMP(3),
  price INT,
  item STRING,
  PRIMARY KEY (id) NOT ENFORCED,
  WATERMARK FOR bidtime AS bidtime - INTERVAL '1' SECOND
) WITH ('connector' = 'upsert-kafka', 'topic' = 'bid', 'key.format' = 'json', 'value.format' = 'json');

CREATE TABLE highest (
  window_end TIMESTAMP(3),
  id INT,
  price INT,
  place BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'highest', 'format' = 'json');

CREATE TABLE last_bids (
  window_end TIMESTAMP(3),
  item STRING,
  id INT
) WITH ('connector' = 'kafka', 'topic' = 'last_bids', 'format' = 'json');

CREATE TABLE standing (
  window_end TIMESTAMP(3),
  id INT,
  half BIGINT,
  place BIGINT
) WITH ('connector' = 'kafka', 'topic' = 'standing', 'format' = 'json');

CREATE TABLE in_order (
  bidtime TIMESTAMP(3),
  id INT,
  price INT
) WITH ('connector' = 'kafka', 'topic' = 'in_order', 'format' = 'json');

CREATE VIEW windows AS
SELECT * FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '10' SECOND));

EXECUTE STATEMENT SET
BEGIN
INSERT INTO highest
SELECT window_end, id, price, place
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS place FROM windows
)
WHERE place <= 2;

INSERT INTO last_bids
SELECT window_end, item, id
FROM windows
QUALIFY ROW_NUMBER() OVER (PARTITION BY item, window_start, window_end ORDER BY bidtime DESC) = 1;

INSERT INTO standing
SELECT window_end, id, NTILE(2) OVER w, DENSE_RANK() OVER w
FROM windows
WINDOW w AS (PARTITION BY window_start, window_end ORDER BY price DESC);

INSERT INTO in_order SELECT bidtime, id, price FROM bid ORDER BY bidtime, price;
END;
