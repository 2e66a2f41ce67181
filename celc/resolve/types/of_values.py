"""Functions of values in places that have names and calls of their own, as the items of TOTAL."""

from celc_runtime.values.functions import FUNCTIONS as TABLE

from celc.core import formula as core
from celc.parse import syntax
from celc.resolve.types import functions as calls
from celc.resolve.types.expressions import Site, absolute, expression


def is_of_values(node: syntax.Call | syntax.Conditional | syntax.Cast, site: Site) -> bool:
    """Whether it is a function of values, as of those of one event, and none of matches."""
    if not isinstance(node, syntax.Call):
        return True
    name = node.function.text
    if node.prior or node.distinct or name in site.schema.declarations.called:
        return False
    return name.upper() in TABLE or (name.upper() == "ABS" and not node.more)


def of_values(
    node: syntax.Call | syntax.Conditional | syntax.Cast, site: Site
) -> core.Expression | None:
    """The meaning of such a function; its operands have theirs in the site."""
    match node:
        case syntax.Conditional():
            return calls.conditional(node, site, expression)
        case syntax.Cast():
            return calls.cast(node, site, expression)
        case syntax.Call() if node.function.text.upper() == "ABS":
            return absolute(node, site)
        case syntax.Call():
            return calls.function_call(TABLE[node.function.text.upper()], node, site, expression)
