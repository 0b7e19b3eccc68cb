"""Decimals as whole numbers and back, in all digits (FM-29).

Columns have up to 38 digits, and Python's arithmetic rounds to 28 of them unless it is told otherwise: also where it
only moves the point or turns the sign.
"""

from __future__ import annotations

from decimal import MAX_PREC, Context, Decimal
from typing import Final

_EXACT: Final = Context(prec=MAX_PREC)


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """The decimal that a column of the scale stores as `unscaled`.

    >>> decimal_of(-12345, 2)
    Decimal('-123.45')
    """
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def unscaled_of(value: Decimal, scale: int) -> int:
    """What a column of the scale, which is at least the value's, stores.

    >>> from decimal import Decimal
    >>> unscaled_of(Decimal("-123.4"), 2)
    -12340
    """
    return int(value.scaleb(scale, _EXACT))
