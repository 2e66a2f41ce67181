"""A proof for one compilation: each step looks at two representations, and says what holds of them.

In: the representations of a compiled query (`representations.py`). Out: a `Verdict` for each step
(`verdict.py`). The steps know the meaning of each representation for themselves. Of celc they
import the classes of representations and no function, so a mistake of a pass is not made twice.
`tests/test_layers.py` holds them to it.
"""
