-- Written by write_models.py; edit fire.cel in its place.
WITH readings AS (SELECT * FROM {{ ref('readings') }})
SELECT * FROM (
-- fire: the matches of this query in CEL, by celc 0.1.0
--   QUERY fire:
--   SELECT hot.value AS celsius, dry.value AS humidity
--   FROM readings
--   WHERE (T AS hot ; H AS dry) FILTER hot.value > 40 AND dry.value <= 25
--   PARTITION BY id
--   WITHIN 10 MINUTES [ts]
WITH
-- the events; place: what puts them in order; micros: event_time in microseconds
events AS (
  SELECT
    "type",
    "id",
    "value",
    "ts" AS event_time,
    EPOCH_US("ts") AS micros,
    "ts" AS place
  FROM "readings"
  WHERE "type" IN ('T', 'H')
),
-- fails where the order of events is not certain
order_check AS (
  SELECT CASE
    WHEN BOOL_OR(untyped) THEN ERROR('the column type of event types is NULL; every event needs a type')
    WHEN BOOL_OR(unplaced) THEN ERROR('the order column ts is NULL; every event needs a place in the order')
    WHEN MAX(copies) > 1 THEN ERROR('two events of a partition are equal in the order, so none comes before the other: ts')
    ELSE TRUE
  END AS passed
  FROM (
    SELECT "type" IS NULL AS untyped, "ts" IS NULL AS unplaced, COUNT(*) AS copies
    FROM "readings"
    WHERE "type" IN ('T', 'H') OR "type" IS NULL
    GROUP BY "type" IS NULL, "id", "ts"
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
  hot.id AS id,
  hot.event_time AS start_time,
  dry.event_time AS end_time,
  hot.value AS celsius,
  dry.value AS humidity
FROM hot
JOIN dry
  ON dry.id IS NOT DISTINCT FROM hot.id
  AND hot.place < dry.place
  AND dry.micros <= hot.micros + 600000000 /* 10 MINUTES */
WHERE (SELECT passed FROM order_check)
)
