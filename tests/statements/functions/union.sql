-- union.sql over table functions of Spark, by celc 0.1.0. In each session first:
--   import union_udf; union_udf.register_all(spark)
SELECT symbol, 'fall' AS kind, n FROM union_clause_1(
  TABLE(SELECT `symbol`, `ts`, `price` FROM ticker)
  PARTITION BY (`symbol`)
  ORDER BY (`ts` NULLS FIRST)
)
UNION ALL
SELECT symbol, 'rise', n FROM union_clause_2(
  TABLE(SELECT `symbol`, `ts`, `price` FROM ticker)
  PARTITION BY (`symbol`)
  ORDER BY (`ts` NULLS FIRST)
);
