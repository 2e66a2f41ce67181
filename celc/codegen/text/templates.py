"""The templates, and the dataclasses that fill them.

The fields of a template's dataclass are its variables; it can read nothing else. All decisions are
made before such an object is made. A template has only layout, loops over parts and tests of
fields.
"""

from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import ClassVar

import jinja2
from celc_runtime.plan.frozen import frozen
from markupsafe import Markup

from celc.diagnostics.source import visible_lines


@frozen
class TemplateView:
    """The variables of one template."""

    template: ClassVar[str]  # the name of the template's file, without `.py.jinja`

    def text(self) -> str:
        """The template filled with the fields."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return environment().get_template(f"{self.template}.py.jinja").render(values)


@frozen
class LegendLine:
    """A comment that explains a number in generated code."""

    number: int
    comment: str


def template_folder() -> Path:
    """The folder of the templates: inside the installed package, or beside it in a checkout."""
    installed = Path(__file__).parents[2] / "templates"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "templates"


@cache
def environment(*, escapes: bool = False) -> jinja2.Environment:
    """The settings of Jinja for all templates: a name without a value is an error.

    With `escapes`, values are escaped as HTML, and have no signs that change how a browser shows
    other text.
    """
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(template_folder(), encoding="utf-8"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=escapes,
        finalize=_shown if escapes else None,
    )


def _shown(value: object) -> object:
    """A value of a page. What a template calls safe does not come from a query."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible_lines(value)
