-- Rows of one time share an answer, and are in it in the order in which they came.
CREATE TABLE events (id BIGINT, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
WITH ('connector' = 'kafka', 'topic' = 'events', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');

CREATE TABLE answers (id BIGINT, f BIGINT, l BIGINT, n BIGINT, vs ARRAY<BIGINT>, texts STRING, so_far BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'answers', 'format' = 'json');

INSERT INTO answers
SELECT
  id, FIRST_VALUE(v) OVER w, LAST_VALUE(v) OVER w, NTH_VALUE(v, 2) OVER w, ARRAY_AGG(v) OVER w,
  LISTAGG(CAST(v AS STRING)) OVER w, LAST_VALUE(v) OVER (ORDER BY ts)
FROM events
WINDOW w AS (ORDER BY ts RANGE BETWEEN INTERVAL '2' SECOND PRECEDING AND CURRENT ROW);
