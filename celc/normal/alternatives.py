"""An absent form → the forms that must all be absent.

No match of ψ1 OR ψ2 exists exactly if no match of ψ1 exists and none of ψ2. So OR is moved out of
an absence, out of the conditions and scopes around it. Each operand then keeps only its own
conditions, and is looked for in its own way. The final labels of an absent form's events do not
matter, nor whether other rounds follow a round.
"""

from dataclasses import replace

from celc.normal import normal_form as lp
from celc.normal.constructors import disjunction, scope
from celc.normal.normal_form import NormalForm
from celc.normal.traversal import is_correlated, labels_of


def alternatives_of(form: NormalForm) -> tuple[NormalForm, ...]:
    """The forms of which an absent form is the OR. Those without conditions across events stay
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
    """The clauses of a form on one of its operands. Clauses are dropped that name a label without
    events in the operand, because they hold for it."""
    unbound = frozenset(form.own) - labels_of(part)
    clauses = tuple(one for one in form.clauses if not unbound.intersection(one.labels))
    return replace(form, operand=part, clauses=clauses) if clauses else part
