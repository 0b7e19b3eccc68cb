"""Readers of file bytes, given modified bytes: an error of the library, or a result, and nothing else.

`make fuzz` does the same, guided by the coverage of the readers.
"""

from __future__ import annotations

import os
import random
from typing import Final

import pytest
from example_counts import examples
from reader_targets import TARGETS
from soak_figures import count, soak_seed

from tableformat.errors import TableFormatError

DEEP: Final = b"[" * 100_000
"""More than a parser that calls itself can take."""


@pytest.mark.parametrize("name", TARGETS)
def test_modified_bytes_raise_only_library_errors(name: str) -> None:
    target = TARGETS[name]
    seeds = target.seeds()
    assert seeds, "nothing to change"
    for seed in seeds:
        target.read(seed)
    draw = random.Random(f"{soak_seed(str(os.environ.get('CI', '')) or None)} {name}")
    for data in (b"", DEEP, *(changed(draw, draw.choice(seeds)) for _ in range(examples(1)))):
        count("changed files")
        try:
            target.read(data)
        except TableFormatError:
            continue
        except Exception as error:
            error.add_note(f"{name}: {data[:2_000]!r}")
            raise


def changed(draw: random.Random, data: bytes) -> bytes:
    """With a few bits flipped, bytes set, cut out, doubled or put in."""
    found = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        place = draw.randrange(len(found) + 1)
        length = draw.choice((1, 1, 2, 4, 16))
        match draw.randrange(6):
            case 0 if place < len(found):
                found[place] ^= 1 << draw.randrange(8)
            case 1:
                found[place : place + length] = draw.choice((b"\x00", b"\xff", b"\x7f", b"\x80")) * length
            case 2:
                del found[place : place + length]
            case 3:
                found[place:place] = found[place : place + length]
            case 4:
                found[place:place] = draw.randbytes(length)
            case _:
                del found[place:]
    return bytes(found)
