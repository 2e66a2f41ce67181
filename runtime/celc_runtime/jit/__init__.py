"""Machine code: how kernels are compiled, kept for the next process, and sent to others.

`kernels.njit` compiles through a cache of its own; `shipping` pickles modules by content;
`bootstrap` brings sources to life in a process that has nothing of celc, and is therefore of the
standard library alone. Imports nothing else of the runtime.
"""
