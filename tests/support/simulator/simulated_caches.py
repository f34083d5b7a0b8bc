"""Write caches of simulated drives, which outlive a session in the file that ``SIMULATED_CACHES`` names.

PYTEST_DONT_REWRITE: as ``simulated_rig``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: Of NVMe, as nvme-cli 2.3 prints it.
FEATURE = "get-feature:0x06 (Volatile Write Cache), Current value:0x0000000"


@dataclass
class Caches:
    """States by serial: ``on`` (of all that are not named), ``off``, ``absent``, ``mute``, ``stuck`` (on).

    ``reset`` is on, and on again when it is first read after it was switched off.
    """

    states: dict[str, str] = field(default_factory=dict)
    file: Path | None = None
    #: Serials of drives that are off until they are read.
    resetting: set[str] = field(default_factory=set)
    #: Serial and state of each switch that was asked for.
    switched: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def of_environment(cls) -> Caches:
        name = os.environ.get("SIMULATED_CACHES")
        return cls(json.loads(Path(name).read_text()), Path(name)) if name else cls()

    def answer(self, serial: str, to: str) -> str:
        """What ``write_cache.sh`` prints."""
        if to == "read":
            if serial in self.resetting:
                self.resetting.remove(serial)
                self.states[serial] = "on"
            return f"{self._report(serial)}==end\n"
        before = self._report(serial)
        self.switched.append((serial, to))
        if self.states.get(serial) == "reset" and to == "off":
            self.resetting.add(serial)
        if self.states.get(serial, "on") in ("on", "off", "reset"):
            self.states[serial] = to
        if self.file:
            self.file.write_text(json.dumps(self.states))
        return f"{before}==switch\nNVMe status: Feature Not Changeable(0x10e)\n{self._report(serial)}==end\n"

    def script(self, arguments: Sequence[str], serials: Mapping[str, str]) -> str:
        """The same of a drive by its kernel name, the first argument."""
        return self.answer(serials.get(arguments[0], ""), arguments[3])

    def _report(self, serial: str) -> str:
        state = self.states.get(serial, "on")
        if state == "mute":
            return "==report\n==identify\n==feature\n"
        value = int(state in ("on", "stuck", "reset"))
        return f'==report\n==identify\n{{"vwc": {int(state != "absent")}}}\n==feature\n{FEATURE}{value}\n'
