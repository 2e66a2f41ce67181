"""Program → the text of a Python module.

In: `plan.Program` for each query, and the text of the file. Out: Python, formatted. `plan_of` makes
the data of the module, values of `celc_runtime.plan`, and `emit` their text. The templates in
`templates/` write code; each has one frozen dataclass with exactly its fields. `imports` records
what the code needs. `escape` is the only way from a query's text into the module. Imports `plan`
and below, and of the runtime `celc_runtime.plan`.
"""
