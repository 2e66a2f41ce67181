"""`celc test`: tests of queries.

`files` reads a test file, with the places of its keys (`places`); `given` reads its rows, `running`
runs a case, `expected` compares the answer, `causes` looks for the clause to mend, `pictures` shows
a difference. `command` is the command; `calls` is what `celc.testing` calls.
"""
