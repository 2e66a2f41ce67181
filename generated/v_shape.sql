CREATE TABLE quotes (symbol STRING, ts TIMESTAMP, price DOUBLE);

SELECT * FROM quotes MATCH_RECOGNIZE (
  PARTITION BY symbol
  ORDER BY ts
  MEASURES FIRST(price) AS top, MIN(price) AS bottom, LAST(price) AS back, COUNT(*) AS n
  PATTERN (S DOWN+ UP+)
  DEFINE DOWN AS price < PREV(price), UP AS price > PREV(price)
)
