"""Program → the text of a Python module.

In: `plan.Program` for each query, and the text of the file. Out: Python, formatted. `plan_of` makes
the data of the module, values of `celc_runtime.plan`. `query` makes the rest: `updates/`,
`correlated/` and `expressions/` fill the templates in `templates/`, each by one frozen dataclass
with exactly its fields. `text/` has how values are printed (`emit`), what the code imports, and
`escape`, the only way from a query's text into the module. Imports `plan` and below, and of the
runtime `celc_runtime.plan`, whose version must be that of the compiler.
"""

from celc.diagnostics.own_runtime import refuse_another

refuse_another()
