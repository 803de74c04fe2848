"""MinkowskiEngine's enumerations as networks use them: listed by pybind11's entries, and as numbers."""

from __future__ import annotations

import pytest

from pumice.compat.minkowski import enums

KINDS = ["RegionType", "PoolingMode", "BroadcastMode", "ConvolutionMode", "MinkowskiAlgorithm", "CoordinateMapType",
         "GPUMemoryAllocatorType"]  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_a_compiled_enumeration_has_its_entries_and_numbers(name: str) -> None:
    kind = getattr(enums, name)
    entries = getattr(kind, "__entries")
    assert [member for member, _ in entries.values()] == list(kind)
    assert list(entries) == list(kind.__members__)
    assert [int(member) for member in kind] == [member.value for member in kind]
    assert ["a", "b", "c", "d"][next(iter(kind))] == "a"


def test_a_region_is_no_number_and_is_one_after_conversion() -> None:
    assert enums.RegionType.HYPER_CROSS != 1
    assert enums.RegionType(int(enums.RegionType.HYPER_CROSS)) is enums.RegionType.HYPER_CROSS
