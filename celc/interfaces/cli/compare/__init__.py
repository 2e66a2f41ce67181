"""`celc diff` and `celc example`: what a change of a query changes, and a smallest stream."""
