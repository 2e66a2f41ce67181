-- fire: the matches of this query in CEL, by celc 0.1.0
--   SELECT *
--   WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.value <= 25 AND dry.id = hot.id
--   WITHIN 10 MINUTES [ts]
WITH
-- the events; place: their numbers in the order, from 0; micros: event_time in microseconds
events AS (
  SELECT
    "type",
    "id",
    "value",
    "ts",
    "ts" AS event_time,
    EPOCH_US("ts") AS micros,
    COUNT(*) OVER (ORDER BY "ts" NULLS FIRST, "row" NULLS FIRST ROWS UNBOUNDED PRECEDING) - 1 AS place
  FROM "Farm"
  WHERE "type" IN ('T', 'H')
),
-- fails where the order of events is not certain
order_check AS (
  SELECT CASE
    WHEN BOOL_OR(untyped) THEN ERROR('the column type of event types is NULL; every event needs a type')
    WHEN BOOL_OR(unplaced) THEN ERROR('the order column ts is NULL; every event needs a place in the order')
    WHEN MAX(copies) > 1 THEN ERROR('two events of a partition are equal in the order, so none comes before the other: ts, row')
    ELSE TRUE
  END AS passed
  FROM (
    SELECT "type" IS NULL AS untyped, "ts" IS NULL AS unplaced, COUNT(*) AS copies
    FROM "Farm"
    WHERE "type" IN ('T', 'H') OR "type" IS NULL
    GROUP BY "type" IS NULL, "ts", "row"
  ) AS places
),
-- hot: the first event of a match
hot AS (
  SELECT *
  FROM events
  WHERE type = 'T'
    AND value > 40.0e0
),
-- dry: the last event of a match
dry AS (
  SELECT *
  FROM events
  WHERE type = 'H'
    AND value <= 25.0e0
)
SELECT
  hot.place AS start_pos,
  dry.place AS end_pos,
  hot.event_time AS start_time,
  dry.event_time AS end_time,
  [{'pos': hot.place, 'id': hot.id, 'value': hot.value, 'ts': hot.ts}] AS hot,
  [{'pos': dry.place, 'id': dry.id, 'value': dry.value, 'ts': dry.ts}] AS dry
FROM hot
JOIN dry
  ON hot.place < dry.place
  AND dry.micros <= hot.micros + 600000000 /* 10 MINUTES */
  AND dry.id = hot.id
WHERE (SELECT passed FROM order_check);
