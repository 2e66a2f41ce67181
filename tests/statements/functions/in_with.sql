-- in_with.sql over table functions of Spark, by celc 0.1.0. In each session first:
--   import in_with_udf; in_with_udf.register_all(spark)
WITH recent AS (SELECT * FROM ticker WHERE ts >= TIMESTAMP '2026-01-01 00:00:00' AND volume > 0)
SELECT m.symbol, COUNT(*) AS n, MAX(m.top - m.bottom) AS depth
FROM in_with_clause_1(
  TABLE(SELECT `symbol`, `ts`, `price` FROM recent)
  PARTITION BY (`symbol`)
  ORDER BY (`ts` NULLS FIRST)
) AS m
WHERE m.top > 1 GROUP BY m.symbol HAVING COUNT(*) > 0 ORDER BY n DESC, m.symbol LIMIT 5;
