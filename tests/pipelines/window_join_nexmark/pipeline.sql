-- Nexmark's q5 (the items with the most bids of each window) and q8 (people who sell in the window in which they came),
-- as they are written for Flink: both are window joins, which answer once.

CREATE TABLE bid (
  auction BIGINT,
  price BIGINT,
  `dateTime` TIMESTAMP(3),
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'bid', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');

CREATE TABLE person (
  id BIGINT,
  name STRING,
  `dateTime` TIMESTAMP(3),
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'person', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');

CREATE TABLE auction (
  id BIGINT,
  seller BIGINT,
  `dateTime` TIMESTAMP(3),
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'auction', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');

CREATE TABLE q5 (auction BIGINT, num BIGINT) WITH ('connector' = 'kafka', 'topic' = 'q5', 'format' = 'json');

CREATE TABLE q8 (id BIGINT, name STRING, stime TIMESTAMP(3)) WITH (
  'connector' = 'kafka', 'topic' = 'q8', 'format' = 'json'
);

CREATE TABLE grown (auction BIGINT, until TIMESTAMP(3), sellers BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'grown', 'format' = 'json'
);

CREATE TABLE together (auction BIGINT, since TIMESTAMP(3), until TIMESTAMP(3), bids BIGINT, offers BIGINT) WITH (
  'connector' = 'kafka', 'topic' = 'together', 'format' = 'json'
);

EXECUTE STATEMENT SET BEGIN

INSERT INTO q5
SELECT AuctionBids.auction, AuctionBids.num
FROM (
  SELECT auction, count(*) AS num, window_start AS starttime, window_end AS endtime
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
  GROUP BY auction, window_start, window_end
) AS AuctionBids
JOIN (
  SELECT max(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime
  FROM (
    SELECT count(*) AS num, window_start AS starttime, window_end AS endtime
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
  ) AS CountBids
  GROUP BY CountBids.starttime, CountBids.endtime
) AS MaxBids
ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime
  AND AuctionBids.num >= MaxBids.maxn;

INSERT INTO q8
SELECT P.id, P.name, P.starttime
FROM (
  SELECT id, name, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY id, name, window_start, window_end
) P
JOIN (
  SELECT seller, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY seller, window_start, window_end
) A
ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime;

-- Windows that grow, with a query on each of them.
INSERT INTO grown
SELECT b.auction, b.window_end, s.sellers
FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) AS b
LEFT JOIN (
  SELECT window_start, window_end, COUNT(DISTINCT seller) AS sellers
  FROM TABLE(CUMULATE(TABLE auction, DESCRIPTOR(`dateTime`), INTERVAL '5' SECOND, INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) AS s
ON b.window_start = s.window_start AND b.window_end = s.window_end;

-- Sessions of both sides that began and ended together.
INSERT INTO together
SELECT b.auction, b.window_start, b.window_end, b.bids, o.offers
FROM (
  SELECT auction, COUNT(*) AS bids, window_start, window_end
  FROM TABLE(SESSION(TABLE bid PARTITION BY auction, DESCRIPTOR(`dateTime`), INTERVAL '5' SECOND))
  GROUP BY auction, window_start, window_end
) AS b
JOIN (
  SELECT id, COUNT(*) AS offers, window_start, window_end
  FROM TABLE(SESSION(TABLE auction PARTITION BY id, DESCRIPTOR(`dateTime`), INTERVAL '5' SECOND))
  GROUP BY id, window_start, window_end
) AS o
ON b.auction = o.id AND b.window_start = o.window_start AND b.window_end = o.window_end;

END;
