"""`--parameters rule=rules.csv`: the tables of parameter sets, read like files of events."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import pyarrow as pa
from celc_runtime.plan.errors import EventError
from celc_runtime.plan.frozen import frozen
from celc_runtime.plan.parameters import Parameters
from celc_runtime.plan.schemas import arrow_type
from celc_runtime.query import CompiledQuery
from celc_runtime.rules.rows import rows_of

from celc.core.formula import Query
from celc.diagnostics.messages.wording import quote
from celc.interfaces.cli.problems import CommandProblem
from celc.interfaces.cli.reading.events import Form
from celc.interfaces.cli.reading.origins import Origin, opened_origins
from celc.interfaces.cli.reading.stream import EventStream
from celc.interfaces.cli.reading.wanted import Wanted


@frozen
class TableFile:
    """The file of a parameter set: its name as it is given, and what is read."""

    name: str
    origins: Sequence[Origin]


def named_files(options: Sequence[str]) -> dict[str, str]:
    """The files by the names of their sets. Raises CommandProblem for an option of another form,
    and for two of one name."""
    found: dict[str, str] = {}
    for option in options:
        name, equals, file = option.partition("=")
        if not (name and equals and file):
            raise CommandProblem(f"--parameters {option}: write NAME=FILE, as in rule=rules.csv")
        if name in found:
            raise CommandProblem(f"--parameters {name}=… is given twice: a set has one table")
        found[name] = file
    return found


def check_sets(files: Mapping[str, str], queries: Sequence[Query]) -> None:
    """Raises CommandProblem for a file that no query reads, and for a query without its file."""
    sets = {query.parameters.name for query in queries if query.parameters is not None}
    for name, file in files.items():
        if name not in sets:
            known = f"FOR EACH {', '.join(sorted(sets))}" if sets else "without FOR EACH"
            raise CommandProblem(
                f"--parameters {name}={file}: no query that is run is FOR EACH {name}; what is run "
                f"is {known}"
            )
    for query in queries:
        parameters = query.parameters
        if parameters is not None and parameters.name not in files:
            raise CommandProblem(
                f"query {quote(query.name)} is FOR EACH {parameters.name}: name the file with its "
                f"rows, as in --parameters {parameters.name}=rules.csv"
            )


@contextmanager
def opened_tables(files: Mapping[str, str]) -> Iterator[dict[str, TableFile]]:
    """The tables by the names of their sets. Raises CommandProblem for a missing file. They are
    open for all queries that read them, because a pipe can be read only once."""
    with ExitStack() as opened:
        yield {
            name: TableFile(file, opened.enter_context(opened_origins([file], None)))
            for name, file in files.items()
        }


def tables_of(
    query: CompiledQuery, files: Mapping[str, TableFile], form: Form
) -> dict[str, pa.Table]:
    """The table of the parameter set of a query; none for a query without a set.

    Raises CommandProblem for a file that cannot be read, and where it does not fit the set.
    """
    parameters = query.plan.source.parameters
    if parameters is None:
        return {}
    file = files[parameters.name]
    try:
        stream = EventStream(file.origins, wanted_of_set(query.name, parameters), form)
        found = [pa.Table.from_batches([batch]) for batch in stream.batches()]
        stream.refuse_misspelt()
        if lacking := stream.lacking():
            names = ", ".join(map(quote, lacking))
            raise CommandProblem(
                f"{file.name}: no row has {names}, which parameter set "
                f"{quote(parameters.name)} declares"
            )
        schema = pa.schema([(one.name, arrow_type(one.type)) for one in parameters.attributes])
        table = pa.concat_tables(found, promote_options="default") if found else None
        table = schema.empty_table() if table is None else table
        rows_of(query.name, parameters, table)
    except EventError as problem:
        raise CommandProblem(f"{file.name}: {problem}") from None
    return {parameters.name: table}


def wanted_of_set(query: str, parameters: Parameters) -> Wanted:
    """The attributes of the set. A file must have all of them."""
    types = {one.name: arrow_type(one.type) for one in parameters.attributes}
    owners = {name: frozenset({parameters.name}) for name in types}
    # Readers look for a column of types; the rows of a set have none.
    no_type = parameters.number
    schema = pa.schema([*types.items(), (no_type, pa.string())])
    return Wanted(query, schema, frozenset(types), no_type, owners, frozenset(types))
