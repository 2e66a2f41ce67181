"""What a word of a text with MATCH_RECOGNIZE is."""

from celc.diagnostics.source import Span
from celc.editor import words
from celc.editor.hover import Hover
from celc.editor.row_patterns.row_outline import RowOutline, row_outline, row_tokens


def hover_rows(text: str, offset: int) -> Hover | None:
    """What the word at an offset is; None where there is no word, or nothing is known of it."""
    tokens = row_tokens(text)
    index = next(
        (i for i, one in enumerate(tokens) if one.name and one.start <= offset <= one.end), None
    )
    if index is None:
        return None
    token = tokens[index]
    following = tokens[index + 1].text if index + 1 < len(tokens) else ""
    before = tokens[index - 1].text if index else ""
    is_function = following == "(" and token.word in words.ROW_FUNCTIONS
    if is_function:
        said: str | None = words.ROW_FUNCTIONS[token.word]
    else:
        said = _name(token.name, row_outline(text), is_column=before == ".")
        if said is None and token.kind == "word":
            said = words.OF_ROW_PATTERNS.get(token.word)
    return None if said is None else Hover(Span(token.start, token.end), said)


def _name(name: str, known: RowOutline, *, is_column: bool) -> str | None:
    key = name.casefold()
    if not is_column:
        for variable in known.variables:
            if variable.casefold() == key:
                return f"variable `{variable}` of the pattern"
        for subset, members in known.subsets:
            if subset.casefold() == key:
                return f"`{subset}`: a subset, of the variables {', '.join(members)}"
        for measure in known.measures:
            if measure.casefold() == key:
                return f"measure `{measure}`"
    for column, kind in known.columns:
        if column.casefold() == key:
            return f"column `{column} {kind}`"
    return None
