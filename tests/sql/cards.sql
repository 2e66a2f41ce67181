-- cards: the matches of a CEL query, by celc 0.1.0
WITH
-- the events, and their places in the order
events AS (
  SELECT
    `card`,
    `city`,
    `ts` AS event_time,
    UNIX_MICROS(`ts`) AS measure,
    COUNT(*) OVER (
      PARTITION BY `card` ORDER BY `ts`
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) - 1 AS pos
  FROM `Payments`
),
-- fails where the order of events is not certain
order_check AS (
  SELECT CASE
    WHEN COUNT(part_2) < COUNT(*) THEN RAISE_ERROR('the order column ts is NULL; every event needs a place in the order')
    WHEN MAX(copies) > 1 THEN RAISE_ERROR('two events of a partition are equal in the order, so none comes before the other: ts')
    ELSE TRUE
  END AS passed
  FROM (
    SELECT `card` AS part_1, `ts` AS part_2, COUNT(*) AS copies
    FROM `Payments`
    GROUP BY `card`, `ts`
  ) AS places
),
-- here: the first event of a match
here AS (
  SELECT *, measure DIV 1800000000 AS bucket
  FROM events
),
-- there: the last event of a match
-- once for each bucket in which it is joined
there AS (
  SELECT *
  FROM events
  LATERAL VIEW EXPLODE(ARRAY(measure DIV 1800000000 - 1, measure DIV 1800000000)) of_bucket AS bucket
)
SELECT
  here.card AS card,
  here.pos AS start_pos,
  there.pos AS end_pos,
  here.event_time AS start_time,
  there.event_time AS end_time,
  here.city AS from_city,
  there.city AS to_city
FROM here
JOIN there
  ON there.bucket = here.bucket
  AND there.card IS NOT DISTINCT FROM here.card
  AND there.pos = here.pos + 1
  AND there.measure - here.measure <= 1800000000
  AND there.city <> here.city
WHERE (SELECT passed FROM order_check);
