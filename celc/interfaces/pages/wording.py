"""What a report says of its query."""

from celc_runtime.query import CompiledQuery

from celc.interfaces.pages.matches import Words


def words_of(query: CompiledQuery, title: str | None = None) -> Words:
    plan = query.plan
    notes = []
    one, many = "match", "matches"
    if plan.answer.totals is not None:
        one, many = "row of totals", "rows of totals"
        per = plan.answer.totals.per
        if per == "PARTITION":
            notes.append(
                "Each row counts all matches of a partition (TOTAL … PER PARTITION): it has no "
                "place on the timeline, and is in the table alone."
            )
        elif per == "END":
            notes.append(
                "Each row counts the matches that end at one event (TOTAL … PER END). It is drawn "
                "at that event: totals do not say which events its matches have."
            )
        else:
            notes.append(
                "Each row counts the matches of a span of time (TOTAL). It is drawn as long as "
                "its span: totals do not say which events its matches have."
            )
    elif plan.answer.collapsed:
        one, many = "union of matches", "unions of matches"
        notes.append(
            "Each bar is the union of all matches that end at one event (COLLAPSED); the column "
            "“matches” says how many these are."
        )
    text = query.text.strip("\n")
    return Words(title or query.name, text, one, many, tuple(notes), is_cel=True)
