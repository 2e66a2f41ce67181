"""What a chain reads: the columns and event types of declared streams, at all of its levels."""

from dataclasses import replace

from celc_runtime.many.groups import of_inputs, reading_all
from celc_runtime.program import Program

Types = frozenset[tuple[str, str]]
"""Event types, as pairs of a stream and a type."""


def declared_types(program: Program) -> Types:
    """The event types of the declared streams that one query reads itself."""
    source = program.plan.source
    return frozenset(one for one in source.declared_types if one[0] not in source.reads)


def levels_of(program: Program) -> dict[str, Program]:
    """All queries of a chain by name, each after those that it reads; the query itself is last."""
    found: dict[str, Program] = {}
    for level in program.levels:
        found |= {name: one for name, one in levels_of(level).items() if name not in found}
    return {**found, program.name: program}


def types_of_chain(program: Program) -> Types:
    """The event types of the declared streams that a chain reads."""
    return frozenset().union(*map(declared_types, levels_of(program).values()))


def as_run(program: Program) -> Program:
    """A query that reads others, in the form that runs over the table of its sorted events."""
    return replace(
        program, plan=replace(program.plan, source=replace(program.plan.source, tiebreak=()))
    )


def declared_part(program: Program) -> Program:
    """A program that reads the declared streams of a query; it is never run."""
    plan = program.plan
    source = plan.source
    if not source.reads:
        return program
    types = declared_types(program)
    part = replace(
        plan,
        source=replace(
            plan.source,
            streams=tuple(name for name in source.streams if name not in source.reads),
            types=tuple(one for one in source.types if one in types),
            other_types=tuple(one for one in source.other_types if one in types),
            attributes=tuple(one for one in source.input_attributes if one.name in source.declared),
            derived=(),
            type_column=len(types) > 1,
            partition_by=tuple(
                name
                for name in source.partition_by
                if name in source.declared and name not in source.made
            ),
            stream_column=False,
            reads=(),
            begin=None,
            relevant=None,
            parameters=None,
        ),
        matching=replace(plan.matching, window=None, local_windows=()),
        answer=replace(plan.answer, labels=(), expressions=()),
    )
    return replace(program, plan=part, reads=())


def source_of(program: Program) -> Program:
    """A program that reads what a query needs of declared streams, directly or through others."""
    if not program.plan.source.reads:
        return program
    parts = {
        name: of_inputs(declared_part(one))
        for name, one in levels_of(program).items()
        if declared_types(one)
    }
    found = reading_all(parts)
    types = tuple(
        dict.fromkeys(one for part in parts.values() for one in part.plan.source.declared_types)
    )
    plan = replace(
        found.plan,
        name=program.name,
        source=replace(
            found.plan.source,
            types=types,
            other_types=(),
            streams=tuple(dict.fromkeys(stream for stream, _ in types)),
            type_column=len(types) > 1,
            stream_column=len({name for _, name in types}) < len(types),
            partition_by=(),
            chosen_keys=(),
        ),
    )
    return replace(found, plan=plan)
