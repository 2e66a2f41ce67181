"""Program → the text of a Python module.

In: `plan.Program` for each query, and the text of the file. Out: Python, formatted. Each template
in `templates/` has one frozen dataclass with exactly its fields; `imports` records what the code
asks for. `escape` is the only way from a query's text into the module. `standalone` adds the
runtime's sources. Imports `plan` and below; never `celc_runtime`.
"""
