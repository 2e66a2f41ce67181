CREATE TABLE quotes (symbol STRING, ts TIMESTAMP, price DOUBLE);

SELECT symbol, ts, part, change FROM quotes MATCH_RECOGNIZE (
  PARTITION BY symbol
  ORDER BY ts
  MEASURES CLASSIFIER() AS part, price - TOP.price AS change
  ALL ROWS PER MATCH
  AFTER MATCH SKIP TO LAST UP
  PATTERN (TOP DOWN+ UP+ OVER) WITHIN INTERVAL '2' HOURS
  DEFINE DOWN AS price < PREV(price) AND price < TOP.price,
    UP AS price > PREV(price) AND price <= AVG(TOP.price),
    OVER AS price > TOP.price AND COUNT(DOWN.*) < 9
)
