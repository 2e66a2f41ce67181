"""The classes of words that have one colour, for both dialects and for every kind of editor. The
words are those of the grammars and of the resolvers."""

from collections.abc import Mapping
from functools import cache

from celc.editor.languages import LANGUAGES, Dialect
from celc.parse.durations import UNITS

CONSTANTS = ("TRUE", "FALSE", "NULL")
OPERATORS = ("AND", "OR", "NOT", "IN", "IS", "BETWEEN", "LIKE", "RLIKE")


@cache
def words_by_class(dialect: Dialect) -> Mapping[str, frozenset[str]]:
    """The words in capitals by constant, operator, keyword, type, function and unit.

    A word can be in several classes: DATE is a keyword before a text, and else a type.
    """
    words = LANGUAGES[dialect].words()
    keywords = words["keyword"]
    return {
        **words,
        "constant": keywords & frozenset(CONSTANTS),
        "operator": keywords & frozenset(OPERATORS),
        "keyword": keywords - frozenset((*CONSTANTS, *OPERATORS)),
        "unit": UNITS,
    }
