"""CAST and TRY_CAST → Spark SQL with the same values in ANSI mode as without, and in any zone.

Spark has no CAST that does without ANSI mode whatever the session's mode is. So what CAST does
there with a number that is too large is written out, around TRY_CAST.
"""

from __future__ import annotations

from celc_runtime.values.types import ddl_of

from celc.core.formula import DataType, DecimalType

WHOLE = {DataType.BYTE: 8, DataType.SHORT: 16, DataType.INT: 32, DataType.LONG: 64}
"""The types of whole numbers, each with its bits."""
_REAL = (DataType.FLOAT, DataType.DOUBLE)
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_PLAIN_DECIMALS = 6
"""Decimals of a DECIMAL that Java always writes without an exponent."""
_BLANK = "[^!-~]*"  # without a backslash, which a setting of Spark gives another meaning
_DATED = f"^{_BLANK}[+-]?[0-9]+"
_UNZONED = f"{_DATED}(-[0-9]+(-[0-9]+([ T][0-9]+(:[0-9]+(:[0-9]+([.][0-9]*)?)?)?)?)?)?{_BLANK}$"


def local(micros: str, zone: str) -> str:
    """The time that clocks of a zone show, given in microseconds since 1970."""
    utc = f"{_EPOCH} + INTERVAL '0.000001' SECOND * ({micros})"
    return utc if zone == "UTC" else f"CONVERT_TIMEZONE('UTC', '{zone}', {utc})"


def instant(clock: str, zone: str) -> str:
    """The time at which the clocks of a zone show a TIMESTAMP_NTZ."""
    return f"TRY_CAST(CONCAT(CAST({clock} AS STRING), ' {zone}') AS TIMESTAMP)"


def cast(text: str, found: DataType, wanted: DataType, zone: str, *, exact: bool) -> str:
    """A value, given as SQL, in another type; `exact`: as TRY_CAST."""
    ddl = ddl_of(wanted.value)
    if isinstance(found, DecimalType) and wanted is DataType.STRING and not exact:
        return _written(text, found)
    if found is DataType.TIMESTAMP:
        return _of_instant(text, wanted, zone, exact=exact)
    if wanted is DataType.TIMESTAMP:
        return _to_instant(text, found, zone, exact=exact)
    if wanted in WHOLE and not exact:
        if found is DataType.STRING:
            return _whole_text(text, ddl)
        if found in _REAL:
            return _limited(text, wanted)
        if found in WHOLE and WHOLE[found] > WHOLE[wanted]:
            return _low_bits(text, wanted)
        if isinstance(found, DecimalType):
            return _cut(text, found, wanted)
    return f"TRY_CAST({text} AS {ddl})"


def _whole_text(text: str, ddl: str) -> str:
    """CAST leaves out what follows a point."""
    whole = f"REGEXP_REPLACE({text}, '^({_BLANK}[+-]?)([0-9]*)[.][0-9]*({_BLANK})$', '$10$2$3')"
    return f"TRY_CAST({whole} AS {ddl})"


def _low_bits(text: str, wanted: DataType) -> str:
    half = 2 ** (WHOLE[wanted] - 1)
    return f"CAST((({text} & {2 * half - 1}L) ^ {half}L) - {half}L AS {ddl_of(wanted.value)})"


def _cut(text: str, found: DecimalType, wanted: DataType) -> str:
    """A DECIMAL without its decimals, and of the rest the low bits."""
    ddl, whole = ddl_of(wanted.value), 2 ** WHOLE[wanted]
    cut = f"CASE WHEN {text} < {zero(found)} THEN CEIL({text}) ELSE FLOOR({text}) END"
    if 10 ** (found.precision - found.scale) <= whole // 2:
        return f"TRY_CAST({cut} AS {ddl})"
    low = f"PMOD({cut}, {whole})"
    return f"CAST(CASE WHEN {low} < {whole // 2} THEN {low} ELSE {low} - {whole} END AS {ddl})"


def _written(text: str, found: DecimalType) -> str:
    """A DECIMAL as Java writes it: below 0.000001 with an exponent, as TRY_CAST does not."""
    plain = f"TRY_CAST({text} AS STRING)"
    if found.scale <= _PLAIN_DECIMALS:
        return plain
    of_zero = f"{text} = {zero(found)}"
    digits = f"IF({of_zero}, '0', LTRIM('0', REGEXP_REPLACE({plain}, '[-.]', '')))"
    sign = f"IF({text} < {zero(found)}, '-', '')"
    least, most = (f"CAST('{one}0.000001' AS {found.value})" for one in ("-", ""))
    return (
        f"CASE WHEN {text} <= {least} OR {text} >= {most} THEN {plain} ELSE CONCAT({sign}, "
        f"REGEXP_REPLACE({digits}, '^(.)(.+)$', '$1.$2'), 'E-', "
        f"CAST({found.scale + 1} - CHAR_LENGTH({digits}) AS STRING)) END"
    )


def zero(type: DecimalType) -> str:
    """0 as a DECIMAL. Beside another number, a small one would lose decimals."""
    return f"CAST(0 AS {type.value})"


def _limited(text: str, wanted: DataType) -> str:
    """A floating number; NaN is 0, and what is too large the last whole number of at least 32
    bits."""
    if wanted in (DataType.BYTE, DataType.SHORT):
        return _low_bits(_limited(text, DataType.INT), wanted)
    bits = WHOLE[wanted]
    most, ddl = 2 ** (bits - 1) - 1, ddl_of(wanted.value)
    limit = f"{float(2 ** (bits - 1))!r}D".replace("e+", "E")
    return (
        f"CASE WHEN ISNAN({text}) THEN 0 WHEN {text} >= {limit} THEN CAST({most}L AS {ddl}) "
        f"WHEN {text} <= -{limit} THEN CAST(-{most}L - 1L AS {ddl}) "
        f"ELSE TRY_CAST({text} AS {ddl}) END"
    )


def _of_instant(text: str, wanted: DataType, zone: str, *, exact: bool) -> str:
    if wanted in _REAL:
        return f"CAST(UNIX_MICROS({text}) / 1000000.0D AS {wanted.value})"
    if isinstance(wanted, DecimalType):
        return f"TRY_CAST(UNIX_MICROS({text}) / 1000000.0D AS {wanted.value})"
    if wanted in WHOLE:
        seconds = f"UNIX_SECONDS({text})"
        return cast(seconds, DataType.LONG, wanted, zone, exact=exact)
    return f"CAST({local(f'UNIX_MICROS({text})', zone)} AS {ddl_of(wanted.value)})"


def _to_instant(text: str, found: DataType, zone: str, *, exact: bool) -> str:
    if found is DataType.STRING:
        clock = instant(f"TRY_CAST({text} AS TIMESTAMP_NTZ)", zone)
        return (
            f"CASE WHEN {text} RLIKE '{_UNZONED}' THEN {clock} "
            f"WHEN {text} RLIKE '{_DATED}-' THEN TRY_CAST({text} AS TIMESTAMP) END"
        )
    if found in WHOLE:
        most = (2**63 - 1) // 1_000_000
        micros = (
            f"CASE WHEN {text} > {most} THEN {2**63 - 1}L WHEN {text} < -{most} "
            f"THEN -{2**63 - 1}L - 1L ELSE {text} * 1000000L END"
        )
        return f"TIMESTAMP_MICROS({micros})"
    if found in _REAL:
        product = f"(CAST({text} AS DOUBLE) * 1000000.0D)"
        micros = cast(product, DataType.DOUBLE, DataType.LONG, zone, exact=exact)
        is_finite = f"{text} < {_infinity(found)} AND {text} > -{_infinity(found)}"
        return f"CASE WHEN {is_finite} THEN TIMESTAMP_MICROS({micros}) END"
    if isinstance(found, DecimalType):
        return f"TRY_CAST({text} AS TIMESTAMP)"
    clock = text if found is DataType.TIMESTAMP_NTZ else f"TRY_CAST({text} AS TIMESTAMP_NTZ)"
    return instant(clock, zone)


def _infinity(type: DataType) -> str:
    return f"CAST('Infinity' AS {type.value})"
