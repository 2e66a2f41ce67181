"""The imports of a generated module, recorded where the code that needs them is written. Generated
code is never searched for names, because a text of the query may look like one."""

from celc.codegen.text.layout import LINE_LENGTH

_NAMES_OF = {
    "celc_runtime.program": ("Program", "with_constants"),
    "celc_runtime.query": ("CompiledQuery", "module_names"),
    "celc_runtime.many.rules": ("with_rules",),
    "celc_runtime.engine.arena.nodes": (
        *(
            "ALWAYS",
            "ARENA_FULL",
            "BARRIER",
            "BLOCK",
            "DONE",
            "INSTANT",
            "NO_BARRIER",
            "EARLIEST",
            "ENTRY",
            "FIRED",
            "KEYS_FULL",
            "LAST",
        ),
        *("LOWEST", "NEVER", "NEXT_NODE", "PART", "ROW", "SHIFT", "USABLE", "put", "put_flat"),
        *("reserve", "room_for_rows", "seal", "seen", "seen_of_key", "select_by_mask"),
        *("union", "union_flat"),
    ),
    "celc_runtime.engine.arena.batch": (
        *("block_of", "next_relevant_row", "window_floor", "write_relevant_rows"),
    ),
    "celc_runtime.engine.definition.nodes": (
        *("Alternatives", "ChosenBy", "Fitting", "InScope", "NotAfter", "NotBefore", "NotBetween"),
        "OneEvent",
        *(
            "Relabelled",
            "Rounds",
            "SameOfBoth",
            "Satisfying",
            "Then",
            "ThenFirst",
            "UnionOfBoth",
            "WhereFact",
            "Without",
        ),
    ),
    "celc_runtime.engine.arena.key_tables": (
        *("AHEAD", "fetch_ahead", "pile_at"),
        *("hash_of", "hash_of_two", "hash_of_three", "row_of", "row_of_two", "row_of_three"),
    ),
    "celc_runtime.engine.walk.listing": ("list_fired",),
    "celc_runtime.engine.definition.open_questions": ("Condition",),
    "celc_runtime.engine.update.pile_bounds": ("LEAST_KEY", "NO_BOUND"),
    "celc_runtime.engine.update.takes": ("taken_from",),
    "celc_runtime.jit.kernels": ("njit",),
    "celc_runtime.jit.own_functions": ("own_function",),
    "celc_runtime.engine.values.label_sets": (
        *("average", "events_of_role", "first_of", "last_of", "largest", "largest_text", "nth_of"),
        *("count_distinct", "count_distinct_texts", "count_known", "deviation", "median"),
        *("median_interval", "variance"),
        *("smallest", "smallest_text", "some_known", "sum_real", "sum_whole"),
    ),
    "celc_runtime.engine.update.union_lists": ("update_by_tables",),
    "celc_runtime.engine.values.spark_arithmetic": (
        *("absolute_int", "absolute_long", "add_int", "add_long", "days_to_microseconds"),
        *("wrap_int", "wrap_narrow"),
        *(
            "divide",
            "equal_real",
            "is_member",
            "key_of_real",
            "less_real",
            "multiply_int",
            "multiply_long",
        ),
        *("remainder_real", "remainder_whole", "subtract_int", "subtract_long"),
        *("symbol_steps", "symbol_table", "whole_to_float"),
    ),
    "celc_runtime.engine.values.time_arithmetic": (
        *("add_duration", "average_interval", "begins_at_time", "can_add", "can_multiply"),
        *("can_subtract", "can_sum_interval", "duration_of", "is_duration", "mean_duration"),
        *("sum_interval", "units_between"),
    ),
    "celc_runtime.engine.values.texts": ("order_of_texts",),
    "celc_runtime.engine.values.made_texts": (
        *("begins_with", "ends_with", "is_like", "joined_text", "length_of_text", "no_text"),
        *("order_of_made", "part_of_text", "place_of_text", "replaced_text", "spelled_text"),
        *("text_of_whole", "trimmed_text", "with_text"),
    ),
    "celc_runtime.engine.values.functions": (*("angle", "ceiling", "floor", "power"),),
    "celc_runtime.engine.values.shortest_digits": (
        *("real_to_decimal", "round_real", "round_whole"),
    ),
    "celc_runtime.engine.values.casts": (
        *("day_of", "decimal_fits", "decimal_to_whole", "real_fits", "real_to_whole"),
        *("seconds_of", "whole_fits", "whole_to_time"),
    ),
    "celc_runtime.engine.values.calendar": (
        *("can_truncate", "day_of_month", "day_of_week", "hour_of", "minute_of", "month_of"),
        *("second_of", "truncate", "year_of"),
    ),
    "celc_runtime.engine.values.decimals": (
        *("absolute_decimal", "add_decimals", "ceil_decimal", "decimal_to_double"),
        *("divide_decimals", "floor_decimal"),
        *("is_decimal", "multiply_decimals", "narrow_of", "negate_decimal"),
        *("remainder_decimals", "rescale_decimal", "subtract_decimals", "wide_in", "wide_of"),
    ),
    "celc_runtime.engine.values.decimal_sets": (
        *("count_distinct_wide", "deviation_of_decimals"),
        *("largest_wide", "median_of_decimals", "smallest_wide", "sum_of_decimals", "sum_of_wide"),
        "variance_of_decimals",
    ),
    "celc_runtime.row_pattern.decimal_memory": (
        *("add_to_sum", "decimal_sum", "pair_in", "put_pair"),
    ),
    "celc_runtime.engine.walk.runs": ("list_runs",),
    "celc_runtime.chain.streams.near.query": ("NearQuery",),
    "celc_runtime.plan.row_pattern": ("states_of",),
    "celc_runtime.row_pattern.program": ("RowProgram",),
    "celc_runtime.row_pattern.query": ("RowPatternQuery", "row_pattern_names"),
    "celc_runtime.plan.transitions": (
        *("EVENTS", "FLOORS", "KEYS", "NO_WINDOW", "earliest", "selection", "tables"),
    ),
}
"""The modules of the runtime, with the names that the code of kernels and tables uses. Only here
does the compiler say where a name of the runtime is; data are imported by their classes
(`Imports.call_of`)."""

MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}


class Imports:
    """The names of the runtime that a module uses, and `np`."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}
        self._homes: dict[str, type] = {}
        self._numpy = False

    def use(self, *names: str) -> None:
        """Record names that code uses, or the text of a template. Raises KeyError for a name
        outside `MODULE_OF`."""
        for name in names:
            if name == "np":
                self._numpy = True
            else:
                self._names.setdefault(MODULE_OF[name], set()).add(name)

    def call_of(self, made: type, *arguments: str) -> str:
        """The text of a call of a class of the runtime. The class itself says from where it is
        imported."""
        assert self._homes.setdefault(made.__name__, made) is made, "two classes have one name"
        self._names.setdefault(made.__module__, set()).add(made.__name__)
        return f"{made.__name__}({', '.join(arguments)})"

    def call(self, name: str, *arguments: str) -> str:
        """The text of a call."""
        self.use(name)
        return f"{name}({', '.join(arguments)})"

    def lines(self) -> tuple[str, ...]:
        """The import statements: numpy's, then those of the runtime by module and name."""
        lines = ["import numpy as np", ""] if self._numpy else []
        for module, names in sorted(self._names.items()):
            lines += _statements(f"from {module} import ", sorted(names))
        return tuple(lines)


def _statements(start: str, names: list[str]) -> list[str]:
    """Statements of one line each. Black would write a longer one with one name on each line."""
    lines = [start + names[0]]
    for name in names[1:]:
        if len(lines[-1]) + len(", ") + len(name) > LINE_LENGTH:
            lines.append(start + name)
        else:
            lines[-1] += f", {name}"
    return lines
