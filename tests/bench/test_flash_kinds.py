from __future__ import annotations

import numpy as np
import pytest
from flash_kinds import KINDS, WITHOUT_GATE, FlashDrive
from numpy.typing import NDArray

pytestmark = pytest.mark.slow

ALL = {**KINDS, **WITHOUT_GATE}


def share(name: str, seed: int, seconds: int) -> NDArray[np.float64]:
    return np.asarray(ALL[name](np.random.default_rng(seed), 1_000.0, seconds) / 1_000)


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(ALL))
def test_they_settle_at_the_mean_they_were_drawn_with(name: str) -> None:
    # Eight capacities, at the slowest drive's half an hour each.
    lasts = [share(name, seed, 14_400)[-3_600:].mean() for seed in range(3)]
    assert np.mean(lasts) == pytest.approx(1, abs=0.01)


def test_the_gate_leaves_what_the_sources_say() -> None:
    """Within 5 % of settled after two fills and one random capacity; further off without the fills."""
    assert all(abs(share("ftl", seed, 300).mean() - 1) < 0.05 for seed in range(3))
    assert all(1.05 < share("ftl_random", seed, 300).mean() < 1.9 for seed in range(3))


@pytest.mark.parametrize("name", list(WITHOUT_GATE))
def test_without_a_gate_a_drive_begins_with_nothing_to_copy(name: str) -> None:
    drive = FlashDrive.drawn(np.random.default_rng(5))
    # After two fills the spare blocks hold nothing that is valid, but have to be erased.
    erase_ns = drive.timing.erase_ns / drive.shape.pages_per_block if name == "ftl_filled" else 0.0
    first = share(name, 5, 120).mean()
    assert first == pytest.approx(1e9 / (drive.timing.program_ns + erase_ns) / drive.settled, rel=0.01)
    assert first > 1.7


def test_a_drive_is_drawn_by_its_seed() -> None:
    for kind in KINDS.values():
        once, again, other = (kind(np.random.default_rng(seed), 1.0, 200) for seed in (1, 1, 2))
        np.testing.assert_array_equal(once, again)
        assert not np.allclose(once, other)
