"""The classes of words that have one colour, for both dialects and for every kind of editor. The
words are those of the grammars and of the resolvers."""

from collections.abc import Mapping
from functools import cache

from celc.diagnostics.messages.functions import FUNCTIONS
from celc.editor.checks import Dialect
from celc.parse.durations import UNITS
from celc.parse.tables import grammar
from celc.resolve.own_aggregates import IN_AGGREGATES
from celc.resolve.schema import TYPE_NAMES
from celc.row_pattern import expressions, parser, resolver

CONSTANTS = ("TRUE", "FALSE", "NULL")
OPERATORS = ("AND", "OR", "NOT", "IN", "IS", "BETWEEN", "LIKE", "RLIKE")


@cache
def words_by_class(dialect: Dialect) -> Mapping[str, frozenset[str]]:
    """The words in capitals by constant, operator, keyword, type, function and unit.

    A word can be in several classes: DATE is a keyword before a text, and else a type.
    """
    if dialect == "cel":
        keywords = frozenset(grammar().keywords)
        types, functions = frozenset(TYPE_NAMES), frozenset((*FUNCTIONS, *IN_AGGREGATES))
    else:
        keywords = parser.keywords()
        types = frozenset(name.upper() for name in resolver.TYPES)
        functions = frozenset(expressions.FUNCTIONS)
    return {
        "constant": keywords & frozenset(CONSTANTS),
        "operator": keywords & frozenset(OPERATORS),
        "keyword": keywords - frozenset((*CONSTANTS, *OPERATORS)),
        "type": types,
        "function": functions,
        "unit": UNITS,
    }
