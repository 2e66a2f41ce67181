"""The routes of queries, for `celc explain --stage routes`: read off the loaded module."""

from collections.abc import Sequence


def dump_routes(parts: tuple[str, ...], names: Sequence[str]) -> str:
    """What runs each of these queries of a module, and why other routes do not."""
    from celc_runtime.routes.why_not import routes_text

    from celc.driver.matcher import Matcher

    queries = Matcher(parts).queries
    return "\n".join(routes_text(queries[name].program) for name in names)
