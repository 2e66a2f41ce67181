"""Write models/fire.sql from fire.cel: run it after each edit of a query, and before `dbt build`.

The statement of celc reads a table by its name. In a model that name is a query over `ref(…)`, by
which dbt knows the order of its models.
"""

import subprocess
from pathlib import Path

MODEL = """-- Written by write_models.py; edit {file} in its place.
WITH {table} AS (SELECT * FROM {{{{ ref('{table}') }}}})
SELECT * FROM (
{statement}
)
"""


def write_model(file: Path, table: str, models: Path) -> Path:
    """The model of a file with one query, called like the file."""
    command = ["celc", "compile", str(file), "--to", "duckdb-sql", "--table", table]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    statement = done.stdout.rstrip().removesuffix(";")
    model = models / f"{file.stem}.sql"
    model.write_text(MODEL.format(file=file.name, table=table, statement=statement), "utf-8")
    return model


if __name__ == "__main__":
    here = Path(__file__).parent
    print(write_model(here / "fire.cel", "readings", here / "models"))
