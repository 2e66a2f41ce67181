"""`celc compile`: modules and statements of query files."""
