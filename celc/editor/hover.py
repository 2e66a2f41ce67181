"""What a word of a `.cel` file is: of an attribute its type, of a label its events, of a keyword
its meaning."""

from collections.abc import Iterable, Mapping, Sequence

from celc_runtime.plan.frozen import frozen

from celc.diagnostics.errors import CelError
from celc.diagnostics.source import Source, Span
from celc.editor import words
from celc.editor.outline import Attributes, Outline, outline, tokens_of
from celc.editor.symbols import Symbol, occurrence_at, occurrences
from celc.parse.parser import parse_with_tokens
from celc.parse.tables import grammar
from celc.parse.tokens import Token, keyword_of, name_text


@frozen
class Hover:
    """What is shown for a place, as Markdown, and the word it is about."""

    span: Span
    text: str


def hover(text: str, offset: int) -> Hover | None:
    """What the word at an offset is; None where there is no word, or nothing is known of it."""
    known = outline(text)
    try:
        file, tokens = parse_with_tokens(Source("", text))
    except CelError:
        tokens, symbol = tokens_of(text), None
        is_right = False
    else:
        found = occurrence_at(occurrences(file), offset)
        symbol = None if found is None else found.symbol
        is_right = True
    index = next(
        (i for i, one in enumerate(tokens) if one.start <= offset <= one.end and _is_word(one)),
        None,
    )
    if index is None:
        return None
    token = tokens[index]
    said = None if symbol is None else _symbol(symbol, known, tokens, index)
    if said is None and not is_right:
        said = _name(known, tokens, index)
    if said is None:
        said = _word(token, tokens[index + 1], is_right=is_right)
    return None if said is None else Hover(token.span, said)


def _is_word(token: Token) -> bool:
    return token.text[:1].isidentifier() or token.is_quoted


def _symbol(symbol: Symbol, known: Outline, tokens: Sequence[Token], index: int) -> str | None:
    """What a name is, in a text with a tree."""
    name = symbol.name
    match symbol.kind:
        case "stream":
            return _stream(name, known)
        case "query":
            return f"query `{name}`"
        case "parameters":
            return _declared([one for one in known.parameters if one.name == name])
        case "parameter":
            sets = [one for one in known.parameters if (one.name,) == symbol.scope]
            return _attribute(name, sets)
        case "aggregate" | "function":
            return f"{symbol.kind} `{name}` of this file"
        case "variable":
            return f"variable `{name}` of the aggregate `{symbol.scope[0]}`"
        case "column":
            return f"column `{name}` of the output"
        case "unknown":
            return None
        case _:
            return _name(known, tokens, index)


def _name(known: Outline, tokens: Sequence[Token], index: int) -> str | None:
    """What a label, type, stream or attribute is, from the tokens alone."""
    token = tokens[index]
    name = name_text(token)
    statement = known.statement(token.start)
    labels, types = known.labels_of(statement), known.types_of(statement)
    own = {one.name for one in types}
    before = tokens[index - 1] if index else None
    if before is not None and before.type == "DOT":
        return _attribute(name, _of_label(name_text(tokens[index - 2]), labels, known))
    if name in labels and name not in own:
        return _label(name, labels[name])
    if name in own:
        return _declared([one for one in types if one.name == name])
    if name in known.streams:
        return _stream(name, known)
    rows = known.set_of(statement)
    if rows is not None and rows.name == name:
        return _declared([rows])
    return _attribute(name, types)


def _of_label(
    label: str, labels: Mapping[str, tuple[Attributes, ...]], known: Outline
) -> tuple[Attributes, ...]:
    return labels.get(label) or tuple(one for one in known.parameters if one.name == label)


def _attribute(name: str, owners: Iterable[Attributes]) -> str | None:
    kinds: dict[str, list[str]] = {}
    for one in owners:
        kind = dict(one.attributes).get(name)
        if kind is not None:
            kinds.setdefault(kind, []).append(f"`{one.name}`")
    lines = [f"`{name}: {kind}`, of {', '.join(of)}" for kind, of in kinds.items()]
    return "\n\n".join(lines) or None


def _label(name: str, types: Sequence[Attributes]) -> str:
    if not types:
        return f"label `{name}`"
    names = ", ".join(f"`{one}`" for one in dict.fromkeys(each.name for each in types))
    return f"label `{name}` of events of {names}\n\n{_declared(types)}"


def _stream(name: str, known: Outline) -> str:
    return f"stream `{name}`\n\n{_declared([one for one in known.types if one.stream == name])}"


def _declared(declared: Iterable[Attributes]) -> str:
    lines = []
    for one in declared:
        what = "PARAMETERS" if one.stream is None else "EVENT"
        attributes = ", ".join(f"{name}: {kind}" for name, kind in one.attributes)
        inside = f"{{ {attributes} }}" if attributes else "{}"
        of = "" if one.stream is None else f"  -- of {one.stream}"
        lines.append(f"{what} {one.name} {inside}{of}")
    return "\n".join(["```cel", *lines, "```"])


def _word(token: Token, following: Token, *, is_right: bool) -> str | None:
    """What a keyword or a function means."""
    word = token.text.upper()
    if token.is_quoted:
        return None
    keyword = keyword_of(token)
    is_keyword = token.type in grammar().keywords.values() if is_right else keyword is not None
    functions = words.OF_ONE_EVENT | words.IN_AGGREGATES | words.FUNCTIONS
    if following.type == "LPAR" and word in functions and not (is_right and is_keyword):
        return functions[word]
    return words.OF_CEL[keyword] if is_keyword and keyword is not None else None
