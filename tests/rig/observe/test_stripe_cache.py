from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.fakes.line_answers import Answers
from support.shells import SHELLS, run_script

from pytest_ssdqual.qual.measured.environment import StripeCache
from pytest_ssdqual.qual.raid.geometry import Geometry
from pytest_ssdqual.rig.observe import stripe_cache


def sampled(geometry: str, answers: Sequence[str]) -> tuple[StripeCache | None, Answers | None]:
    servers: list[Answers] = []

    def start(argv: Sequence[str]) -> Answers:
        assert argv[-1] == "md100"
        servers.append(Answers(answers))
        return servers[-1]

    array = SimpleNamespace(geometry=Geometry.parse(geometry), kname="md100")
    machine = SimpleNamespace(line_process=start)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stripe_cache, "PERIOD_S", 0.001)
        with stripe_cache.sampled(machine, array) as samples:  # type: ignore[arg-type]
            if servers:
                assert servers[-1].exhausted.wait(30)
    return samples.result, servers[-1] if servers else None


def test_mean_and_most_of_the_samples() -> None:
    found, server = sampled("raid5x4", ["256 100", "256 200", "256 256"])
    assert found == StripeCache(256, 3, 185.3, 256)
    assert found.share == pytest.approx(185.3 / 256)
    assert server
    assert server.closed


@pytest.mark.parametrize("answers", [[], ["", "", ""], ["no number", "256 x"], ["0 0"]])
def test_what_is_no_sample_gives_no_result(answers: list[str]) -> None:
    assert sampled("raid6x5", answers)[0] is None


@pytest.mark.parametrize("geometry", ["raid0x2", "raid1x2", "raid10x4", "drivex3"])
def test_other_levels_are_not_asked(geometry: str) -> None:
    assert sampled(geometry, ["256 1"]) == (None, None)


def test_a_process_that_does_not_start_costs_only_the_samples() -> None:
    def start(argv: Sequence[str]) -> Answers:
        raise OSError("no shell")

    array = SimpleNamespace(geometry=Geometry.parse("raid5x4"), kname="md100")
    with stripe_cache.sampled(SimpleNamespace(line_process=start), array) as samples:  # type: ignore[arg-type]
        pass
    assert samples.result is None


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_answers_each_line(tmp_path: Path, shell: str) -> None:
    folder = tmp_path / "sys" / "block" / "md100" / "md"
    folder.mkdir(parents=True)
    (folder / "stripe_cache_size").write_text("256\n")
    (folder / "stripe_cache_active").write_text("13\n")
    script = stripe_cache.SCRIPT.replace("/sys/", f"{tmp_path}/sys/")
    for name, said in (("md100", "256 13\n"), ("md101", "\n")):
        assert run_script(shell, script, "stripe_cache", name, stdin="\n\n") == 2 * said
