from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_ssdqual.lab import __main__ as command


@pytest.mark.parametrize(("arguments", "release"), [([], ""), (["--release", "debian12"], "debian12")])
def test_the_image_is_built_for_the_hosts_or_the_named_release(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], release: str
) -> None:
    asked = []

    def ensure(*_: object, release: str) -> SimpleNamespace:
        asked.append(release)
        return SimpleNamespace(initrd=Path("cache/initrd"))

    monkeypatch.setattr(command, "ensure", ensure)
    assert command.main(["--build-only", *arguments]) == 0
    assert asked == [release]
    assert capsys.readouterr().out == "cache\n"


def test_an_unknown_release_is_refused_with_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--release", "debian9"])
    assert "debian13" in capsys.readouterr().err
