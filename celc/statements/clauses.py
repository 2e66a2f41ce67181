"""The clauses of a statement: where each begins and ends, its source, and the names of WITH that
the source sees.

MATCH_RECOGNIZE is the clause behind a source in FROM and before a parenthesis. In any other place
it is a word of the host's.
"""

from __future__ import annotations

from dataclasses import dataclass

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import Diagnostics
from celc.diagnostics.messages import statements as messages
from celc.statements.words import Word

_WORD = "MATCH_RECOGNIZE"
_IN_FROM = frozenset({"FROM", "JOIN"})
_KEPT = {
    "VIEW": "a view",
    "MACRO": "a macro",
    "FUNCTION": "a function",
    "PREPARE": "a prepared statement",
    "CACHE": "a cached query",
}
_OUT_OF_FROM = frozenset(
    {
        *("SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "QUALIFY", "WINDOW", "LIMIT"),
        *("UNION", "EXCEPT", "INTERSECT", "VALUES", "SET"),
    }
)


@frozen
class Names:
    """The lists of WITH that a place sees, the outermost first: the first and last word of each
    entry; whether the list is recursive."""

    entries: tuple[tuple[int, int], ...]
    is_recursive: bool


@frozen
class Clause:
    """A clause, by the numbers of words. `first` begins its source, `word` is MATCH_RECOGNIZE,
    `last` its closing parenthesis. `names`: the lists of WITH that it sees."""

    first: int
    word: int
    last: int
    names: tuple[Names, ...]


def clauses_of(
    words: list[Word], found: Diagnostics, *, calls_functions: bool = False
) -> list[Clause]:
    """All clauses in the order of the words MATCH_RECOGNIZE, so that one in the source of another
    comes first. Adds errors: a parenthesis without its partner, a second statement, a source that
    looks at columns from outside, a view or what else keeps the text. calls_functions: the clauses
    will be calls of functions of a session, which what lives as long as the session can keep."""
    finder = _Finder(words, _partners(words, found), found)
    end = len(words)
    for number, word in enumerate(words):
        if word.key == ";":
            if number + 1 < len(words):
                found.add(messages.second_statement(words[number + 1].span))
            end = number
            break
    finder.level(0, end, ())
    if finder.clauses:
        _refuse_kept(words, found, calls_functions=calls_functions)
    return finder.clauses


def _refuse_kept(words: list[Word], found: Diagnostics, *, calls_functions: bool) -> None:
    """Report a statement that the host keeps as a text, and reads again alone."""
    first = words[0]
    if first.key in _KEPT and not calls_functions:
        found.add(messages.view_of_clause(_KEPT[first.key], first.span))
    if first.key not in ("CREATE", "ALTER"):
        return
    lives_shortly = False
    for word in words[1:]:
        lives_shortly |= word.key in ("TEMPORARY", "TEMP")
        if word.key in _KEPT:
            span = first.span.to(word.span)
            if not calls_functions:
                found.add(messages.view_of_clause(_KEPT[word.key], span))
            elif not lives_shortly:
                found.add(messages.view_of_functions(_KEPT[word.key], span))
            return
        if word.key in ("TABLE", "AS", "("):
            return


def _partners(words: list[Word], found: Diagnostics) -> dict[int, int]:
    """For each parenthesis the number of its partner."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    for number, word in enumerate(words):
        if word.key == "(":
            opened.append(number)
        elif word.key == ")":
            if not opened:
                found.add(messages.lone_parenthesis(word.span))
                found.raise_errors()
            partner = opened.pop()
            partners[partner], partners[number] = number, partner
    if opened:
        first = next((n for n in opened if n and words[n - 1].key == _WORD), opened[-1])
        of_clause = first > 0 and words[first - 1].key == _WORD
        span = words[first - 1].span.to(words[first].span) if of_clause else words[first].span
        found.add(messages.unclosed(of_clause, span))
        found.raise_errors()
    return partners


@dataclass
class _Finder:
    words: list[Word]
    partners: dict[int, int]
    found: Diagnostics

    def __post_init__(self) -> None:
        self.clauses: list[Clause] = []

    def level(self, at: int, end: int, names: tuple[Names, ...], in_from: bool = False) -> None:
        """The clauses between two parentheses, from one word to before another. in_from: it is a
        part of FROM, such as a join."""
        begins_source = in_from
        while at < end:
            key = self.words[at].key
            if key == "WITH":
                at, more = self._with(at, end, names)
                names = (*names, more) if more.entries else names
                continue
            word = self._behind_source(at, end) if begins_source else at
            if word > at and self._is_clause(word, end):
                self._source(at, word, names)
                at, begins_source = self._chain(at, word, end, names), False
                continue
            if key == "LATERAL" and begins_source:
                word = self._behind_source(at + 1, end)
                if self._is_clause(word, end):
                    self.found.add(messages.source_from_outside(self.words[at].span))
                    at, begins_source = self.partners[word + 1] + 1, False
                    continue
            elif in_from and self._is_clause(at, end):
                self.found.add(messages.no_source(self.words[at].span))
            in_from = (in_from or key in _IN_FROM) and key not in _OUT_OF_FROM
            begins_source = in_from and key in (*_IN_FROM, ",")
            if key == "(":
                self._inside(at, names, in_from)
                at = self.partners[at]
            at += 1

    def _chain(self, first: int, word: int, end: int, names: tuple[Names, ...]) -> int:
        """A clause, and those that stand behind its answer; the word behind them."""
        last = word
        while self._is_clause(word, end):
            last = self.partners[word + 1]
            self.clauses.append(Clause(first, word, last, names))
            word = self._behind_alias(last + 1, end)
        return last + 1

    def _source(self, at: int, word: int, names: tuple[Names, ...]) -> None:
        """The clauses in a source."""
        while at < word:
            if self.words[at].key == "(":
                self._inside(at, names, in_from=True)
                at = self.partners[at]
            at += 1

    def _is_clause(self, at: int, end: int) -> bool:
        words = self.words
        return at + 1 < end and words[at].key == _WORD and words[at + 1].key == "("

    def _inside(self, opening: int, names: tuple[Names, ...], in_from: bool = False) -> None:
        """The clauses in a parenthesis. In FROM it can hold a join."""
        first, end = self.words[opening + 1].key, self.partners[opening]
        is_query = first in ("SELECT", "WITH", "VALUES", "FROM")
        self.level(opening + 1, end, names, in_from and not is_query)

    def _behind_source(self, at: int, end: int) -> int:
        """The word behind a source that begins at a word; the same word where none does.

        A source: `a.b`, `f(…)`, `(…)`, `VALUES (…), (…)` or a text that names a file, and its alias
        and TABLESAMPLE.
        """
        words, first = self.words, at
        if words[at].key == "TABLE" and at + 1 < end and words[at + 1].key == "(":
            at = self.partners[at + 1] + 1
        elif words[at].key == "(":
            at = self.partners[at] + 1
        elif self._keys(at, end, 2) == ["VALUES", "("]:
            at = self.partners[at + 1] + 1
            while self._keys(at, end, 2) == [",", "("]:
                at = self.partners[at + 1] + 1
        elif words[at].is_text:
            at += 1
        elif words[at].can_be_name:
            at += 1
            while at + 1 < end and words[at].key == "." and words[at + 1].can_be_name:
                at += 2
            if at < end and words[at].key == "(" and words[at - 1].key != _WORD:
                at = self.partners[at] + 1
                if self._keys(at, end, 2) == ["WITH", "ORDINALITY"]:
                    at += 2
        else:
            return first
        # DuckDB has the alias before TABLESAMPLE, Spark behind.
        return self._behind_alias(self._behind_sample(self._behind_alias(at, end), end), end)

    def _behind_alias(self, at: int, end: int) -> int:
        words = self.words
        if at < end and words[at].key == "AS":
            at += 1
        is_name = at < end and words[at].can_be_name and words[at].key != "TABLESAMPLE"
        if is_name and not self._is_clause(at, end):
            at += 1
            if at < end and words[at].key == "(":
                at = self.partners[at] + 1
        return at

    def _behind_sample(self, at: int, end: int) -> int:
        """Behind `TABLESAMPLE method (…)` or `TABLESAMPLE 10 PERCENT`, and REPEATABLE."""
        if self._keys(at, end, 1) != ["TABLESAMPLE"]:
            return at
        at += 1
        at += self._keys(at, end, 2)[1:] == ["("]
        if self._keys(at, end, 1) == ["("]:
            at = self.partners[at] + 1
        else:
            at += 1
            at += self._keys(at, end, 1)[:1] in (["%"], ["PERCENT"], ["ROWS"])
        if self._keys(at, end, 2) == ["REPEATABLE", "("]:
            at = self.partners[at + 1] + 1
        return min(at, end)

    def _keys(self, at: int, end: int, count: int) -> list[str]:
        return [word.key for word in self.words[at : min(at + count, end)]]

    def _with(self, at: int, end: int, names: tuple[Names, ...]) -> tuple[int, Names]:
        """The entries of a WITH, and the word behind them; none where it is another WITH."""
        words = self.words
        entries: list[tuple[int, int]] = []
        start = at
        at += 1
        is_recursive = at < end and words[at].key == "RECURSIVE"
        at += is_recursive
        while at + 1 < end and words[at].can_be_name:
            first = at
            at += 1
            if words[at].key == "(":
                at = self.partners[at] + 1
            if at >= end or words[at].key != "AS":
                return start + 1, Names((), False)
            at += 1
            while at < end and words[at].key in ("NOT", "MATERIALIZED"):
                at += 1
            if at >= end or words[at].key != "(":
                return start + 1, Names((), False)
            self.level(at + 1, self.partners[at], (*names, Names(tuple(entries), is_recursive)))
            entries.append((first, self.partners[at]))
            at = self.partners[at] + 1
            if at >= end or words[at].key != ",":
                break
            at += 1
        return max(at, start + 1), Names(tuple(entries), is_recursive)


def pattern_of(words: list[Word], clause: Clause) -> range:
    """The words of PATTERN in a clause, where `?` is a quantifier."""
    depth = 0
    begin = 0
    for at in range(clause.word + 2, clause.last):
        key = words[at].key
        if key == "PATTERN" and depth == 0 and words[at + 1].key == "(":
            begin = at + 1
        depth += (key == "(") - (key == ")")
        if begin and at > begin and depth == 0:
            return range(begin, at)
    return range(0)
