-- IN and EXISTS under OR and as values: a row says whether it matches, and is corrected when that changes.

CREATE TABLE orders (
  id BIGINT,
  who STRING,
  amount INT
) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE friends (
  who STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'friends', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE shown (
  id BIGINT,
  is_friend BOOLEAN,
  has_more BOOLEAN
) WITH (
  'connector' = 'kafka', 'topic' = 'shown', 'format' = 'changelog-json'
);

CREATE TABLE chosen (
  id BIGINT
) WITH (
  'connector' = 'kafka', 'topic' = 'chosen', 'format' = 'changelog-json'
);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO shown
SELECT id, who IN (SELECT who FROM friends), EXISTS (SELECT * FROM orders AS x WHERE x.who = o.who AND x.amount > o.amount)
FROM orders AS o;

INSERT INTO chosen
SELECT id FROM orders WHERE amount > 100 OR who IN (SELECT who FROM friends) OR amount < ALL (SELECT 7 FROM friends);
END;
