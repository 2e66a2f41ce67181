"""The input of all forms of an update, besides their tables or piles."""

from collections.abc import Sequence

from celc_runtime.plan.frozen import frozen

from celc.codegen.text.imports import Imports
from celc.codegen.text.templates import LegendLine
from celc.codegen.updates.pile_bounds import BoundCode
from celc.codegen.updates.window import WindowCode
from celc.plan.tables import Kind


@frozen
class UpdateInput:
    """What an update of query `number` needs to know of the query and of the module.

    - `header` is the comment above the update: its form, and why it has this form.
    - `symbols` are the symbols in words.
    - `consumes`: a match makes the update forget all partial matches.
    - `simultaneous`: events of one instant read what was there before it.
    - `bounds` are those of its piles, None: there are none.
    """

    number: int
    header: str
    kinds: Sequence[Kind]
    kind_bits: int
    symbols: Sequence[LegendLine]
    window: WindowCode
    imports: Imports
    partitioned: bool
    consumes: bool
    simultaneous: bool = False
    bounds: BoundCode | None = None
