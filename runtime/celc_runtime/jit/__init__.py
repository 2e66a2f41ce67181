"""Machine code: how kernels are compiled, kept for the next process, and sent to others.

`kernels.njit` compiles through its own cache. `shipping` pickles modules by content. `bootstrap`
loads sources in a process without celc, so it uses only the standard library. Imports nothing else
of the runtime.
"""
