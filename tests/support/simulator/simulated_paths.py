"""What the drives of a machine that was never there hang on, as ``shared_path.SCRIPT`` would print it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

#: Its root port and its upstream port.
SWITCH = "0000:3a:00.0", "0000:3b:00.0"


def text(boot: str, knames: Sequence[str], switches: Sequence[str] = ()) -> str:
    """Each NVMe drive at a root port of its own, but those named in ``switches``: all behind one switch.

    A switch has 16 lanes, and a drive four, of PCIe 4. Machines are the same one if ``boot`` is.
    """
    lines = [f"- boot {uuid.uuid5(uuid.NAMESPACE_DNS, boot)}"]
    for number, kname in enumerate(knames, 1):
        ports = [f"0000:{number:02x}:00.0"]
        if kname in switches:
            ports = [*SWITCH, f"0000:3c:{number:02x}.0"]
        functions = [*ports, f"0000:{64 + number:02x}:00.0"]
        bus = f"pci{functions[0][:7]}"
        lines += [f"==drive {kname}", "path " + "/".join(["/sys/devices", bus, *functions, "nvme", kname[:-2]])]
        lines += [f"{kname[:-2]} transport pcie", f"{kname[:-2]} address {functions[-1]}"]
        lines += [f"{functions[-1]} class 0x010802", *(f"{each} class 0x060400" for each in ports)]
        lines += [f"{each} speed 16.0 GT/s PCIe" for each in functions]
        lines += [f"{each} width {16 if each in SWITCH else 4}" for each in functions]
    return "\n".join([*lines, "==end", ""])
