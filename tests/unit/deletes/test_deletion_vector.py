"""Serialized deletion vectors, compared with the bytes of the reference implementation."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from foreign_tables import VECTORS

from tableformat.deletes.codecs.deletion_vector import MAGIC, decode_positions, decode_vector, encode_vector
from tableformat.deletes.positions import PositionSet
from tableformat.errors import CorruptFileError

WRITTEN = {
    "empty.bin": [],
    "alternating.bin": [1, 3, 5, 7, 9],
    "small_and_large.bin": [100, 101, 2147483747, 2147483748],
}


def positions(values: object) -> PositionSet:
    return PositionSet.from_array(np.array(values, np.int64))


def framed(vector: bytes) -> bytes:
    body = MAGIC + vector
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_vectors_of_the_reference_implementation_decode(name: str) -> None:
    """DA-7"""
    assert decode_vector((VECTORS / name).read_bytes(), name).to_array().tolist() == WRITTEN[name]


@pytest.mark.parametrize("name", [*sorted(WRITTEN), "every_container.bin"])
def test_encoding_gives_the_bytes_of_the_reference_implementation(name: str) -> None:
    stored = (VECTORS / name).read_bytes()
    assert encode_vector(decode_vector(stored, name)) == stored


def test_every_kind_of_container_decodes() -> None:
    found = decode_vector((VECTORS / "every_container.bin").read_bytes(), "golden")
    low = [5, 7, *range(1 << 16, (1 << 16) + 10_000, 2), *range((2 << 16) + 1, (2 << 16) + 65535)]
    assert found.to_array().tolist() == [*low, *((1 << 32) + position for position in low)]


def test_maps_of_64_bit_values_decode() -> None:
    low = decode_positions((VECTORS / "map_low.bin").read_bytes(), "golden")
    assert low.to_array().tolist() == list(range(10))
    spread = decode_positions((VECTORS / "map_spread.bin").read_bytes(), "golden")
    assert spread.to_array().tolist() == [(key << 32) + value for key in range(10) for value in range(10)]
    assert decode_positions((VECTORS / "map_empty.bin").read_bytes(), "golden") == PositionSet.empty()


def test_positions_with_keys_above_31_bits_are_rejected() -> None:
    with pytest.raises(CorruptFileError, match="golden"):
        decode_positions((VECTORS / "map_above_31_bits.bin").read_bytes(), "golden")


def test_a_well_formed_map_with_a_key_above_31_bits_is_refused() -> None:
    bitmap_of_zero = struct.pack("<IIHHIH", 12346, 1, 0, 0, 16, 0)
    vector = struct.pack("<Q", 1) + struct.pack("<I", 1 << 31) + bitmap_of_zero
    with pytest.raises(CorruptFileError, match=r"t\.puffin: .*position 9223372036854775808"):
        decode_vector(framed(vector), "t.puffin")


@pytest.mark.parametrize(
    "values",
    [[], [0], [2**62], list(range(100_000)), [*range(0, 70_000, 2), *range(200_000, 400_000)], [5, 2**32, 2**40 + 1]],
)
def test_vector_encoding_round_trips(values: list[int]) -> None:
    assert decode_vector(encode_vector(positions(values)), "x") == positions(values)


def test_long_run_is_encoded_without_expansion() -> None:
    everything = PositionSet.from_runs(np.array([0, 2**33]), np.array([2**32, 2**33 + 5]))
    assert decode_vector(encode_vector(everything), "x") == everything


def test_runs_take_four_bytes_each() -> None:
    """As in the reference implementation: ten single values take twenty bytes, and a bitmap takes eight thousand."""
    runs = np.arange(0, 60_000, 60)
    assert len(encode_vector(PositionSet.from_runs(runs, runs + 10))) < 4_100
    assert len(encode_vector(PositionSet.from_runs(np.array([0, 4, 9, 100]), np.array([1, 5, 10, 30_000])))) < 100


GOOD = encode_vector(positions([1, 2, 9]))


@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"", "0 bytes"),
        (GOOD[:11], "shorter than its frame"),
        (GOOD[:-1], "states"),
        (GOOD + b"\0", "states"),
        (GOOD[:4] + b"abcd" + GOOD[8:], "begins with 61626364"),
        (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "checksum"),
        (GOOD[:20] + bytes([GOOD[20] ^ 1]) + GOOD[21:], "checksum"),
        (framed(b"no bitmap at all"), "not a 64-bit Roaring bitmap"),
    ],
)
def test_a_damaged_vector_is_refused_by_name(blob: bytes, reason: str) -> None:
    """DA-8"""
    with pytest.raises(CorruptFileError, match=rf"^t\.puffin: .*{reason}"):
        decode_vector(blob, "t.puffin")


def test_gap_at_a_bitmap_boundary_is_preserved() -> None:
    positions = PositionSet.from_array(np.array([2**32 - 1, 2**32 + 2**22]))
    assert decode_vector(encode_vector(positions), "vector") == positions
