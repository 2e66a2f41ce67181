"""The second front end: MATCH_RECOGNIZE, from its text to a generated module.

Takes a text, gives a module for `celc_runtime.row_pattern`. `parser` and `resolver` find the
meaning, `automaton` the moves of the pattern in order of preference, `positions` which rows the
conditions read, `module` writes the code and `show` its comments. Expressions are those of CEL
(`celc.core.formula`) with leaves that read rows. `celc.resolve.types.conversions` says what
operators ask of types, `celc.codegen.expressions.operations` what their code is.
"""
