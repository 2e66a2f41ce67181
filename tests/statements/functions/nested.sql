-- nested.sql over table functions of Spark, by celc 0.1.0. In each session first:
--   import nested_udf; nested_udf.register_all(spark)
SELECT * FROM nested_clause_2(
  TABLE(SELECT `symbol`, `ts2`, `p` FROM (SELECT * FROM nested_clause_1(
  TABLE(SELECT `symbol`, `ts`, `price` FROM ticker)
  PARTITION BY (`symbol`)
  ORDER BY (`ts` NULLS FIRST)
)) AS rises)
  PARTITION BY (`symbol`)
  ORDER BY (`ts2` NULLS FIRST)
);
