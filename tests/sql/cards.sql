-- cards: the matches of this query in CEL, by celc 0.1.0
--   SELECT here.city AS from_city, there.city AS to_city
--   FROM Payments
--   WHERE (Payment AS here : Payment AS there) FILTER there.city != here.city
--   PARTITION BY card
--   WITHIN 30 MINUTES
WITH
-- the events; place: their numbers in the order, from 0; micros: event_time in microseconds
events AS (
  SELECT
    `card`,
    `city`,
    `ts` AS event_time,
    UNIX_MICROS(`ts`) AS micros,
    COUNT(*) OVER (PARTITION BY `card` ORDER BY `ts` ROWS UNBOUNDED PRECEDING) - 1 AS place
  FROM `Payments`
),
-- fails where the order of events is not certain
order_check AS (
  SELECT CASE
    WHEN BOOL_OR(unplaced) THEN RAISE_ERROR('the order column ts is NULL; every event needs a place in the order')
    WHEN MAX(copies) > 1 THEN RAISE_ERROR('two events of a partition are equal in the order, so none comes before the other: ts')
    ELSE TRUE
  END AS passed
  FROM (
    SELECT `ts` IS NULL AS unplaced, COUNT(*) AS copies
    FROM `Payments`
    GROUP BY `card`, `ts`
  ) AS places
),
-- here: the first event of a match
-- bucket: parts as long as the window; a match lies in one, or in two neighbours
here AS (
  SELECT *, micros DIV 1800000000 AS bucket
  FROM events
),
-- there: the last event of a match
-- once for each bucket in which the here of its match can be
there AS (
  SELECT *
  FROM events
  LATERAL VIEW EXPLODE(ARRAY(micros DIV 1800000000 - 1, micros DIV 1800000000)) of_bucket AS bucket
)
SELECT
  here.card AS card,
  here.place AS start_pos,
  there.place AS end_pos,
  here.event_time AS start_time,
  there.event_time AS end_time,
  here.city AS from_city,
  there.city AS to_city
FROM there
JOIN here
  ON there.bucket = here.bucket
  AND there.card IS NOT DISTINCT FROM here.card
  AND there.place = here.place + 1
  AND there.micros - here.micros <= 1800000000 /* 30 MINUTES */
  AND there.city <> here.city
WHERE (SELECT passed FROM order_check);
