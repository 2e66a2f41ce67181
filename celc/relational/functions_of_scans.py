"""Functions of a label whose events are those of some scans."""

from celc.core import formula as core
from celc.core.formula import Expression
from celc.relational.relations import NotRelational


def aggregated(leaf: core.Aggregate, scans: tuple[str, ...]) -> Expression:
    """A function of the events of some scans, which are in order."""
    if leaf.function == "LIST":
        raise NotRelational("a function of one's own is called, which is not SQL", leaf.span)
    if leaf.function == "COUNT":
        return core.Constant(len(scans), leaf.type, leaf.span)
    if not scans:
        return core.Constant(None, leaf.type, leaf.span)
    assert leaf.attribute is not None
    read = leaf.attribute
    match leaf.function:
        case "FIRST":
            return core.AttributeValue(scans[0], read, leaf.type, leaf.span)
        case "LAST":
            return core.AttributeValue(scans[-1], read, leaf.type, leaf.span)
        case "NTH":
            number = leaf.place - 1 if leaf.place > 0 else len(scans) + leaf.place
            if not 0 <= number < len(scans):
                return core.Constant(None, leaf.type, leaf.span)
            return core.AttributeValue(scans[number], read, leaf.type, leaf.span)
        case "MIN" | "MAX":
            values = tuple(core.AttributeValue(s, read, leaf.type, leaf.span) for s in scans)
            if len(values) == 1:
                return values[0]
            if leaf.function == "MIN":
                return core.Choice("LEAST", values, leaf.type, leaf.span)
            return core.Choice("GREATEST", values, leaf.type, leaf.span)
        case _:
            raise NotRelational(f"{leaf.function} is taken of a label", leaf.span)
