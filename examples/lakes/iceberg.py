"""Events in a table of Iceberg, matches in another: each once, however often this runs.

python examples/lakes/iceberg.py CATALOG    with the packages pyiceberg and celc, without Spark
"""

import sys
from pathlib import Path
from typing import Any

from pyiceberg.catalog import load_catalog

import celc


def matches_of(catalog: Any) -> int:
    """Merge the matches of the table farm.events into farm.matches; returns how many are new."""
    query = celc.compile_files(Path(__file__).with_name("fire.cel")).fire.with_options(
        match_id=True
    )
    found = query.match_table(catalog.load_table("farm.events").scan().to_arrow())
    there = catalog.create_table_if_not_exists("farm.matches", found.schema)
    told = there.upsert(found, join_cols=["match_id"], when_matched_update_all=False)
    return int(told.rows_inserted)


if __name__ == "__main__":
    print(f"{matches_of(load_catalog(sys.argv[1]))} new matches")
