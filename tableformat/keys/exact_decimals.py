"""Converts decimals to whole numbers and back without rounding (FM-29).

Columns have up to 38 digits. Python's arithmetic rounds to 28 digits by default, even if it only moves the decimal
point or changes the sign.
"""

from __future__ import annotations

from decimal import MAX_PREC, Context, Decimal
from typing import Final

_EXACT: Final = Context(prec=MAX_PREC)


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """The decimal that a column of this scale stores as `unscaled`.

    >>> decimal_of(-12345, 2)
    Decimal('-123.45')
    """
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def unscaled_of(value: Decimal, scale: int) -> int:
    """The whole number that a column of this scale stores. The scale is at least that of the value.

    >>> from decimal import Decimal
    >>> unscaled_of(Decimal("-123.4"), 2)
    -12340
    """
    return int(value.scaleb(scale, _EXACT))
