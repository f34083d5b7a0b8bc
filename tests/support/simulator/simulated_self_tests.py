"""Self-tests of simulated NVMe drives: ``SIMULATED_SELF_TESTS=SSDQ0002=failed`` says how they end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from support.builders import inspected
from support.simulator.pairs import pairs

#: Results in log page 06h.
RESULTS = {"passed": 0, "lost": 0, "aborted": 1, "failed": 7}


@dataclass
class SelfTests:
    """By kernel name; a number is how many minutes an extended one takes.

    A drive can also have none, refuse them (``refused``), or never end one (``endless``). One begins none although it
    accepts the command (``ignored``), one does not answer once (``lost``).
    """

    #: Serial number → end.
    ends: dict[str, str]
    #: How often a drive with a begun self-test was asked; the first answer is that it runs.
    asked: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    @classmethod
    def of_environment(cls) -> SelfTests:
        return cls(pairs("SIMULATED_SELF_TESTS"))

    def script(self, what: str, arguments: Sequence[str], serials: Mapping[str, str]) -> str:
        """What ``self_test.sh`` says."""
        lines = []
        for kname in arguments[::3]:
            is_refused = what != "end" and self.ends.get(serials[kname]) == "refused"
            lines.append("refused with exit status 4: busy" if is_refused else "")
            if what == "end":
                self.ended.add(kname)
            elif not is_refused:
                self.asked[kname] = 0
                self.kinds[kname] = what
        return "".join(f"{line}\n" for line in lines)

    def sections(self, kname: str, serial: str) -> dict[str, str]:
        """What differs in the answer of ``inspection.sh``."""
        end = self.ends.get(serial, "passed")
        if end == "none":
            return {"id-ctrl": json.dumps({"oacs": 0})}
        if kname not in self.asked:
            return {"id-ctrl": json.dumps({"oacs": 0x10, "edstt": int(end)})} if end.isdecimal() else {}
        self.asked[kname] += 1
        log = [int(each) for each in inspected.NO_SELF_TEST.split()]
        if end == "lost" and self.asked[kname] == 2:
            return {"self-test": "", "smart": ""}
        if end == "ignored":  # an earlier one failed
            log[4] = 1 << 4 | RESULTS["failed"]
        elif self.asked[kname] == 1 or (end == "endless" and kname not in self.ended):
            log[:2] = [2 if self.kinds[kname] == "extended" else 1, 40]
        else:
            log[4] = 1 << 4 | RESULTS.get("passed" if end.isdecimal() else end, 1)
        return {"self-test": " ".join(map(str, log))}
