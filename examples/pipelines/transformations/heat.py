"""Matches as tables of a pipeline: one that is made anew at each run, one that goes on."""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

import celc

spark = SparkSession.active()
EVENTS = "type STRING, sensor STRING, at TIMESTAMP, celsius DOUBLE, percent INT"
FOLDER = (Path(__file__).parent.parent / "events").resolve().as_uri()
QUERY = celc.compile_files(Path(__file__).parent.parent / "heat.cel").DryHeat


@dp.materialized_view
def readings() -> DataFrame:
    return spark.read.schema(EVENTS).csv(FOLDER, header=True)


@dp.materialized_view
def dry_heat() -> DataFrame:
    """From another table of the pipeline, which may not be there yet."""
    return QUERY.match(spark.read.table("readings"))


@dp.table
def dry_heat_as_it_comes() -> DataFrame:
    """From the source itself: Spark plans a stream before the pipeline begins."""
    events = spark.readStream.schema(EVENTS).csv(FOLDER, header=True)
    return QUERY.match_stream(events, watermark="1 minute")
