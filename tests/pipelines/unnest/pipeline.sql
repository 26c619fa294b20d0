-- The items of baskets, each with its place; all baskets with their tags; how often each product is in them.

CREATE TABLE baskets (
  id BIGINT,
  items ARRAY<ROW<product STRING, amount INT>>,
  tags ARRAY<STRING>,
  prices MAP<STRING, DECIMAL(6, 2)>
) WITH (
  'connector' = 'kafka', 'topic' = 'baskets', 'scan.startup.mode' = 'earliest-offset',
  'format' = 'changelog-json'
);

CREATE TABLE sold (
  id BIGINT,
  product STRING,
  amount INT,
  place INT,
  price DECIMAL(6, 2)
) WITH (
  'connector' = 'kafka', 'topic' = 'sold',
  'format' = 'changelog-json'
);

CREATE TABLE tagged (
  id BIGINT,
  tag STRING
) WITH (
  'connector' = 'kafka', 'topic' = 'tagged',
  'format' = 'changelog-json'
);

CREATE TABLE products (
  product STRING,
  n BIGINT,
  PRIMARY KEY (product) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'products',
  'format' = 'changelog-json'
);

EXECUTE STATEMENT SET
BEGIN
INSERT INTO sold
SELECT b.id, i.product, i.amount, i.place, p.price
FROM baskets AS b
CROSS JOIN UNNEST(b.items) WITH ORDINALITY AS i (product, amount, place)
CROSS JOIN UNNEST(b.prices) AS p (name, price)
WHERE p.name = i.product;

INSERT INTO tagged
SELECT id, tag FROM baskets LEFT JOIN UNNEST(tags) AS t (tag) ON TRUE;

INSERT INTO products
SELECT product, COUNT(*) FROM baskets, UNNEST(items) AS i (product, amount) GROUP BY product;
END;
