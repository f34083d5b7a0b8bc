from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ssdqual.qual.units import (
    Unit,
    format_capacity,
    format_clock,
    format_duration,
    format_latency,
    format_range,
    format_size,
    format_value,
    parse_duration,
    parse_latency,
    parse_size,
    parse_throughput,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4k", 4096),
        ("4K", 4096),
        ("128KiB", 131072),
        ("1m", 1 << 20),
        ("1.5m", 3 << 19),
        ("2g", 2 << 30),
        ("512", 512),
        ("512 B", 512),
        ("480 GB", 480 * 10**9),
        ("1.92 TB", 1_920 * 10**9),
        ("450MB", 450 * 10**6),
        ("1,048,576", 1 << 20),
    ],
)
def test_sizes_are_binary_as_in_fio_and_decimal_as_on_the_label(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "k", "-4k", "4q", "4k;rm", "0", "0.3", "1,5k", "4 k b", "4k\n5", "٤k", "nan", "1e3"]
)
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a (size|whole)"):
        parse_size(text)


def test_kb_is_refused_because_it_means_two_things() -> None:
    with pytest.raises(ValueError, match="1000 or 1024"):
        parse_size("4 KB")


@pytest.mark.parametrize(
    ("text", "in_bytes"), [("500 Mb", "MB"), ("480gb", "GB"), ("1 Tb", "TB"), ("4 Kib", "KiB"), ("128mib", "MiB")]
)
def test_small_b_after_a_prefix_is_refused(text: str, in_bytes: str) -> None:
    for parse, given_text in ((parse_size, text), (parse_throughput, f"{text}/s")):
        with pytest.raises(ValueError, match=f'"{in_bytes}" for bytes'):
            parse(given_text)


@given(st.integers(1, 2**60))
def test_every_size_survives_printing(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.integers(1, 2**60))
def test_a_size_has_one_spelling(size: int) -> None:
    spelled = format_size(size)
    assert format_size(parse_size(f"{size}")) == spelled
    assert not (spelled.endswith("k") and int(spelled[:-1]) % 1024 == 0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("12m", 720), ("10s", 10), ("1.5h", 5400), ("5 min", 300), ("200us", 0.0002), ("1 d", 86400), ("250 µs", 0.00025)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["10", "fast", "10 parsec", "10 S", "-1s", ""])
def test_a_duration_needs_a_unit(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "latency_ns"),
    [("1.4 ms", 1_400_000), ("200us", 200_000), ("15ns", 15), ("2 s", 2 * 10**9), ("0.1 µs", 100)],
)
def test_latencies_are_whole_nanoseconds(text: str, latency_ns: int) -> None:
    assert parse_latency(text) == latency_ns


@pytest.mark.parametrize("text", ["fast", "0 ms", "0.1 ns", "1.4", "4 m", "4 min", "1 h", "1 d"])
def test_what_is_no_latency_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="latency"):
        parse_latency(text)


@given(st.integers(1, 10**12))
def test_a_printed_latency_is_right_to_three_digits(latency_ns: int) -> None:
    assert math.isclose(parse_latency(format_latency(latency_ns).replace(",", "")), latency_ns, rel_tol=0.0051)


@given(st.floats(1e-6, 1e7))
def test_a_printed_duration_is_right_to_three_digits(seconds: float) -> None:
    assert math.isclose(parse_duration(format_duration(seconds)), seconds, rel_tol=0.0051)


def test_throughput_is_decimal() -> None:
    assert parse_throughput("450 MB/s") == 450 * 10**6


@pytest.mark.parametrize("text", ["450 MB", "450", "fast/s"])
def test_what_is_no_throughput_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a throughput"):
        parse_throughput(text)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (9412.3, Unit.IOPS, "9,412 IOPS"),
        (1_420_000, Unit.NANOSECONDS, "1.42 ms"),
        (812_000, Unit.NANOSECONDS, "812 µs"),
        (999_700, Unit.NANOSECONDS, "1 ms"),
        (math.inf, Unit.NANOSECONDS, "∞ s"),
        (98.72, Unit.PERCENT, "98.7 %"),
        (1.349, Unit.RATIO, "1.35 ×"),
        (450e6, Unit.BYTES_PER_SECOND, "450 MB/s"),
        (45.678, Unit.IOPS, "45.7 IOPS"),
    ],
)
def test_values_as_people_read_them(value: float, unit: Unit, text: str) -> None:
    assert format_value(value, unit) == text


def test_an_interval_names_a_shared_unit_once() -> None:
    assert format_range(810e3, 818e3, Unit.NANOSECONDS) == "810…818 µs"
    assert format_range(980e3, 1.2e6, Unit.NANOSECONDS) == "980 µs…1.2 ms"
    assert format_range(3, 5, Unit.COUNT) == "3…5"


def test_an_interval_without_an_end_says_so() -> None:
    assert format_range(812e3, math.inf, Unit.NANOSECONDS) == "812 µs…∞"
    assert format_range(-math.inf, 3.0, Unit.PERCENT) == "-∞…3.0 %"
    assert format_range(-math.inf, math.inf, Unit.PERCENT) == "-∞…∞"


def test_ends_that_differ_look_different() -> None:
    assert format_range(9.4121e6, 9.4142e6, Unit.NANOSECONDS) == "9.412…9.414 ms"
    assert format_range(0.9981, 1.0021, Unit.RATIO) == "0.998…1.002 ×"
    assert format_range(9_412.1, 9_412.3, Unit.IOPS) == "9,412.1…9,412.3 IOPS"
    # As far as two more digits go.
    assert format_range(1.0, 1.0000001, Unit.RATIO) == "1.0000…1.0000 ×"
    assert format_range(500, 500, Unit.IOPS) == "500…500 IOPS"
    assert format_capacity(480 * 10**9) == "480 GB"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.9, "0:00"),
        (31, "0:31"),
        (720, "12:00"),
        (15000, "4:10:00"),
        (86400, "1 d 0:00:00"),
        (274200.5, "3 d 4:10:00"),
    ],
)
def test_a_clock_is_one_notation_for_all_lengths(seconds: float, text: str) -> None:
    assert format_clock(seconds) == text
