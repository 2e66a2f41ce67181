"""The text of generated modules: templates, imports, values as calls, and the only escape."""
