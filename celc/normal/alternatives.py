"""An absent form → the forms that must all be absent.

No match of ψ1 OR ψ2 lies somewhere exactly if none of ψ1 does and none of ψ2. So OR comes out of an
absence, from below the conditions and scopes around it: each operand then has only the conditions
that concern it, and can be looked for in its own way. And nobody asks which labels the events of an
absent form carry in the end, or whether one round of it is followed by others.
"""

from dataclasses import replace

from celc.normal import normal_form as lp
from celc.normal.constructors import disjunction, scope
from celc.normal.normal_form import NormalForm
from celc.normal.traversal import is_correlated, labels_of


def alternatives_of(form: NormalForm) -> tuple[NormalForm, ...]:
    """The forms of which an absent form is the OR; those without conditions across events stay
    together."""
    while isinstance(form, lp.Relabel) or (isinstance(form, lp.Iteration) and form.least == 1):
        form = form.operand
    parts = dict.fromkeys(_operands(form))
    plain = tuple(part for part in parts if not is_correlated(part))
    others = tuple(part for part in parts if is_correlated(part))
    return (*((disjunction(plain, form.span),) if plain else ()), *others)


def _operands(form: NormalForm) -> tuple[NormalForm, ...]:
    match form:
        case lp.Disjunction():
            return tuple(part for operand in form.operands for part in _operands(operand))
        case lp.Scope():
            labels = frozenset(form.labels)
            return tuple(scope(part, labels, form.span) for part in _operands(form.operand))
        case lp.Within():
            return tuple(replace(form, operand=part) for part in _operands(form.operand))
        case lp.Correlated():
            return tuple(_asked(form, part) for part in _operands(form.operand))
        case _:
            return (form,)


def _asked(form: lp.Correlated, part: NormalForm) -> NormalForm:
    """The clauses of a form on one of its operands; without those that name a label which the
    operand has no event of: for it they hold."""
    unbound = frozenset(form.own) - labels_of(part)
    clauses = tuple(one for one in form.clauses if not unbound.intersection(one.labels))
    return replace(form, operand=part, clauses=clauses) if clauses else part
