-- again: the matches of this query in CEL, by celc 0.1.0
--   SELECT NONE
--   FROM Site
--   WHERE (Login AS before ; FIRST (Login AS back)) FILTER back.ts - before.ts > 30 DAYS
--   PARTITION BY account
WITH
-- the events; place: what puts them in order
events AS (
  SELECT
    `type`,
    `account`,
    `ts`,
    `ts` AS event_time,
    `ts` AS place
  FROM `Site`
  WHERE `type` IN ('Login', 'Mailed')
),
-- fails where the order of events is not certain
order_check AS (
  SELECT CASE
    WHEN BOOL_OR(untyped) THEN RAISE_ERROR('the column type of event types is NULL; every event needs a type')
    WHEN BOOL_OR(unplaced) THEN RAISE_ERROR('the order column ts is NULL; every event needs a place in the order')
    WHEN MAX(copies) > 1 THEN RAISE_ERROR('two events of a partition are equal in the order, so none comes before the other: ts')
    ELSE TRUE
  END AS passed
  FROM (
    SELECT `type` IS NULL AS untyped, `ts` IS NULL AS unplaced, COUNT(*) AS copies
    FROM `Site`
    WHERE `type` IN ('Login', 'Mailed') OR `type` IS NULL
    GROUP BY `type` IS NULL, `account`, `ts`
  ) AS places
),
-- before: the first event of a match
before AS (
  SELECT *
  FROM events
  WHERE type = 'Login'
),
-- back: the last event of a match
back AS (
  SELECT *
  FROM events
  WHERE type = 'Login'
),
-- back_2: events that a match must not have
back_2 AS (
  SELECT *
  FROM events
  WHERE type = 'Login'
)
SELECT
  before.account AS account,
  before.event_time AS start_time,
  back.event_time AS end_time
FROM before
JOIN back
  ON back.account IS NOT DISTINCT FROM before.account
  AND before.place < back.place
  AND TRY_SUBTRACT(UNIX_MICROS(back.ts), UNIX_MICROS(before.ts)) > 2592000000000 /* 30 DAYS */
WHERE NOT EXISTS (
    SELECT 1
    FROM back_2
    WHERE back_2.account IS NOT DISTINCT FROM before.account
      AND before.place < back_2.place
      AND back_2.place < back.place
  )
  AND (SELECT passed FROM order_check);
