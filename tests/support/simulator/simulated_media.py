"""What simulated drives have been through: sectors written, and whether anything since their last purge."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ssdqual.rig.purge.zero import SPOT_BYTES


@dataclass
class Media:
    """By kernel name; with a ``file`` also in sessions to come. Only what fio writes is counted."""

    file: Path | None = None
    written: dict[str, int] = field(default_factory=dict)
    filled: set[str] = field(default_factory=set)

    @classmethod
    def of_environment(cls) -> Media:
        """As the last session left them, if ``SIMULATED_MEDIA`` names a file."""
        name = os.environ.get("SIMULATED_MEDIA")
        file = Path(name) if name else None
        known = json.loads(file.read_text()) if file and file.exists() else {"written": {}, "filled": []}
        return cls(file, known["written"], set(known["filled"]))

    def write(self, knames: Iterable[str], size_bytes: int) -> None:
        for kname in knames if size_bytes else ():
            self.written[kname] = self.written.get(kname, 0) + size_bytes // 512
            self.filled.add(kname)
        self._keep()

    def purge(self, path: str) -> None:
        self.filled.discard(path.removeprefix("/dev/"))
        self._keep()

    def counters(self, knames: Sequence[str]) -> str:
        """As ``counters.SCRIPT`` tells them."""
        lines = [f"{kname} 1 0 0 0 0 0 0 {self.written.get(kname, 0)} 0 0 0 0 0 0 0" for kname in knames]
        return "\n".join(["boot simulated", *lines])

    def zeroes(self, path: str, spots: Sequence[str]) -> str:
        """As ``condition.ZEROES`` tells them: all of a purged drive, a few of random data."""
        filled = path.removeprefix("/dev/") in self.filled
        return f"{SPOT_BYTES // 256 if filled else SPOT_BYTES}\n" * len(spots)

    def _keep(self) -> None:
        if self.file:
            self.file.write_text(json.dumps({"written": self.written, "filled": sorted(self.filled)}))
