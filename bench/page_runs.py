"""Four run folders with pages to look at, of the simulated rig: a pass, a slow drive, a dead drive, a slow md.

    python bench/page_runs.py FOLDER

The pictures of the manual are such pages: ``chromium --headless --screenshot=docs/report.png --window-size=1200,1670``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Environment of the simulated rig by the name of the run.
SCENES = {
    "pass": {},
    "slow-drive": {"SIMULATED_SLOW": "SSDQ10003=0.6"},
    "dead-drive": {"SIMULATED_TROUBLE": "pulled:SSDQ10002"},
    "slow-md": {"SIMULATED_MD": "600"},
}


def main(folder: Path) -> None:
    """Run the suite of RAID 5 in each scene."""
    for name, scene in SCENES.items():
        command = [
            sys.executable, "-m", "pytest", "-p", "support.simulator.simulated_rig", "-q", "--no-header", "--tb=no",
            "--ssd-devices=root@dut1:/dev/nvme*", "--ssd-protocol=quick", "-o", "ssd_members=true",
            "-p", "no:cacheprovider",
            f"--ssd-run-dir={folder / name}", str(ROOT / "suites" / "raid5"),
        ]  # fmt: skip
        subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "SIMULATED_DRIVES": "8", "SIMULATED_MODEL": "SSDQUAL SM300", **scene},
            check=False,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
