"""What makes modules of texts: the list of passes (`pipeline`), and what becomes of their result:
a module in memory (`matcher`), one that brings its runtime (`standalone`), or the machine code of
its queries (`warm`).
"""
