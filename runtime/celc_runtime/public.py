"""What users of a generated module call, and what modules of earlier versions import."""

from celc_runtime.display import as_html, with_integers
from celc_runtime.expanding import expand
from celc_runtime.plan.conditions import TextComparison, TextCondition
from celc_runtime.plan.errors import (
    EventError,
    EventWarning,
    FunctionError,
    PlanWarning,
    StateError,
    WorkLimitError,
)
from celc_runtime.plan.expressions import (
    Absolute,
    Aggregate,
    Arithmetic,
    Cast,
    Computed,
    Constant,
    DecimalArithmetic,
    Negation,
    OwnAggregate,
    ParameterValue,
)
from celc_runtime.plan.parameters import (
    Concern,
    OfBoth,
    OfEvent,
    OfRow,
    Parameter,
    Parameters,
    Pattern,
)
from celc_runtime.plan.plan import (
    Attribute,
    ChosenKey,
    Deadline,
    Kind,
    Label,
    PerStart,
    Plan,
    Window,
)
from celc_runtime.plan.relevance import AttributeTest, Relevant
from celc_runtime.program import Program, with_constants
from celc_runtime.query import CompiledQuery, module_names
from celc_runtime.spark.input.union_streams import union_streams
from celc_runtime.stream.finish import finish
from celc_runtime.stream.match import split_late
from celc_runtime.stream.monitor import monitor

__all__ = [
    "Absolute",
    "Aggregate",
    "Arithmetic",
    "Attribute",
    "AttributeTest",
    "Cast",
    "ChosenKey",
    "CompiledQuery",
    "Computed",
    "Concern",
    "Constant",
    "Deadline",
    "DecimalArithmetic",
    "EventError",
    "EventWarning",
    "FunctionError",
    "Kind",
    "Label",
    "Negation",
    "OfBoth",
    "OfEvent",
    "OfRow",
    "OwnAggregate",
    "Parameter",
    "ParameterValue",
    "Parameters",
    "Pattern",
    "PerStart",
    "Plan",
    "PlanWarning",
    "Program",
    "Relevant",
    "StateError",
    "TextComparison",
    "TextCondition",
    "Window",
    "WorkLimitError",
    "as_html",
    "expand",
    "finish",
    "module_names",
    "monitor",
    "split_late",
    "union_streams",
    "with_constants",
    "with_integers",
]
