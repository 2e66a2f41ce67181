"""Events in a table of Delta, matches in another: each once, however often this runs.

python examples/lakes/delta.py FOLDER    with the packages deltalake and celc, without Spark
"""

import sys
from pathlib import Path

import deltalake
import pyarrow as pa

import celc


def matches_of(folder: str) -> int:
    """Merge the matches of FOLDER/events into FOLDER/matches; returns how many are new."""
    query = celc.compile_files(Path(__file__).with_name("fire.cel")).fire.with_options(
        match_id=True
    )
    events = pa.table(deltalake.DeltaTable(f"{folder}/events").to_pyarrow_dataset().to_table())
    found = query.match_table(events)
    if not deltalake.DeltaTable.is_deltatable(f"{folder}/matches"):
        deltalake.write_deltalake(f"{folder}/matches", found.slice(0, 0))
    told = (
        deltalake.DeltaTable(f"{folder}/matches")
        .merge(
            found,
            predicate="there.match_id = found.match_id",
            source_alias="found",
            target_alias="there",
        )
        .when_not_matched_insert_all()
        .execute()
    )
    return int(told["num_target_rows_inserted"])


if __name__ == "__main__":
    print(f"{matches_of(sys.argv[1])} new matches")
