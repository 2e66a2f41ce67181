-- keys.sql over table functions of Spark, by celc 0.1.0. In each session first:
--   import keys_udf; keys_udf.register_all(spark)
SELECT * FROM keys_clause_1(
  TABLE(SELECT `symbol`, `ts`, `price` FROM ticker)
  PARTITION BY (UPPER(symbol), CAST(TIMESTAMP_NTZ '1970-01-01 00:00:00' + INTERVAL '0.000001' SECOND * (UNIX_MICROS(ts)) AS DATE))
);
