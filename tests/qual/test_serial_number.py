from __future__ import annotations

import pytest

from pytest_ssdqual.qual.serial_number import is_generic


@pytest.mark.parametrize(
    "serial",
    [
        "0000", "00000000000000000000", "FFFFFFFFFFFF", "0000_0000_0000_0000.", "000000000001", "00000000000000000001",
        "0000000000000000000A", "123456789", "1234567890", "12345678", "123456789012", "1234567890ABCDEF",
        "0123456789abcdef", "0123456789ABCDEF0123", "ABCDEF0123456789", "ABCDEFGHIJ", "9876543210", "123456789ABC",
    ],
)  # fmt: skip
def test_a_placeholder_is_generic(serial: str) -> None:
    assert is_generic(serial)


@pytest.mark.parametrize(
    "serial",
    [
        "", "0", "S1", "1234", "SSDQ0001", "BTWL3455014Z", "S64FNE0R100001", "50026B7782345678", "000000000012",
        "00000000000000000123", "12345678X1", "2012345678901234", "0000000101", "AA000000000000000001", "1000000000",
        "5000c500a1b20001", "PHYS7304008R240AGN", "192323456789",
    ],
)  # fmt: skip
def test_a_number_that_one_drive_may_have_is_not(serial: str) -> None:
    assert not is_generic(serial)
