"""What a drive does by itself now, by its own logs: a self-test, a sanitize, a format; pure.

Such a drive is slower and warmer than it is, and nothing about that is a defect. Sources: NVM Express Base
Specification 2.1 (log pages 06h and 81h; Identify Namespace, FPI), ACS-4 (SMART READ DATA, byte 363; SANITIZE STATUS
EXT), SPC-6 (Self-Test Results log page), and the JSON of smartctl 7.3 to 7.5.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from pytest_ssdqual.rig.drives.topology import AUTO_SMART, Drive
from pytest_ssdqual.rig.health.smart_answer import at, whole

#: Log page 06h, bits 3:0 of byte 0; 0 is none. Byte 1 has the completed per cent in bits 6:0.
SELF_TESTS = {1: "a short self-test", 2: "an extended self-test", 3: "a refresh that a host asked for"}
A_SELF_TEST = "a self-test"
#: Bits 7:4 of the execution status (ATA) and the result (SCSI) of a self-test that is in progress.
IN_PROGRESS = 0xF
#: Entries of SCSI's log of self-tests.
SCSI_ENTRIES = 20
#: Log page 81h: SSTAT bits 2:0 of a sanitize in progress; the first two bytes are its share in 65,536ths.
SANITIZING = 2
#: Identify Namespace, FPI: bit 7 says that it is supported, bits 6:0 have the per cent that are left.
FPI_SUPPORTED, FPI_LEFT = 0x80, 0x7F
#: ``hdparm --sanitize-status``: ``State: SD2 Sanitize operation In Process``, ``Progress: 0x8000 (50%)``.
ATA_SANITIZING, ATA_PROGRESS = re.compile(r"\bSD2\b"), re.compile(r"\((\d{1,3})%\)")


def of(
    drive: Drive,
    smart: object,
    self_test: Sequence[int] = (),
    sanitize: Sequence[int] = (),
    format_progress: int | None = None,
    ata_sanitize: str = "",
) -> str:
    """Return what a drive does, and the cure, as a clause that follows its name; empty if it does nothing.

    ``smart`` is the JSON of smartctl, ``self_test`` and ``sanitize`` the bytes of these log pages, ``format_progress``
    FPI, ``ata_sanitize`` the answer of hdparm; what is not known is left out.
    """
    running = next(_self_tests(smart, self_test), "")
    if running:
        kind = "" if drive.smart_type == AUTO_SMART else f"-d {shlex.quote(drive.smart_type)} "
        return f"runs {running}: wait until it has ended, or abort it with `smartctl -X {kind}{drive.path}`"
    erasing = next(_erasures(sanitize, format_progress, ata_sanitize), "")
    return f"{erasing}: wait until that has ended" if erasing else ""


def self_test(smart: object) -> str | None:
    """Return the self-test that runs by smartctl's JSON: ``a self-test (40 % left)``; "" if none, None if unknown."""
    reported = (
        whole(smart, "nvme_self_test_log", "current_self_test_operation", "value"),
        whole(smart, "ata_smart_data", "self_test", "status", "value"),
        whole(smart, "scsi_self_test_0", "result", "value"),
    )
    return next(_self_tests(smart, ()), None if reported == (None, None, None) else "")


def _self_tests(smart: object, log: Sequence[int]) -> Iterator[str]:
    """Yield each self-test that runs, with the share that is left; ATA reports it in tenths."""
    if len(log) >= 2 and (operation := log[0] & 0xF):
        yield f"{SELF_TESTS.get(operation, A_SELF_TEST)} ({100 - min(100, log[1] & 0x7F)} % left)"
    if operation := whole(smart, "nvme_self_test_log", "current_self_test_operation", "value") or 0:
        done = whole(smart, "nvme_self_test_log", "current_self_test_completion_percent")
        left = "" if done is None else f" ({100 - min(100, done)} % left)"
        yield SELF_TESTS.get(operation, A_SELF_TEST) + left
    status = whole(smart, "ata_smart_data", "self_test", "status", "value") or 0
    if status >> 4 == IN_PROGRESS:
        tenths = status & 0xF
        yield f"{A_SELF_TEST} ({f'{10 * tenths} %' if tenths else 'less than 10 %'} left)"
    for index in range(SCSI_ENTRIES):
        entry = at(smart, f"scsi_self_test_{index}")
        if whole(entry, "result", "value") == IN_PROGRESS or at(entry, "self_test_in_progress") is True:
            yield A_SELF_TEST


def _erasures(sanitize: Sequence[int], format_progress: int | None, ata_sanitize: str) -> Iterator[str]:
    if len(sanitize) >= 4 and sanitize[2] & 7 == SANITIZING:
        yield f"sanitizes itself ({100 * (sanitize[0] | sanitize[1] << 8) // 65_536} % done)"
    if ATA_SANITIZING.search(ata_sanitize):
        progress = ATA_PROGRESS.search(ata_sanitize)
        yield f"sanitizes itself ({progress[1]} % done)" if progress else "sanitizes itself"
    if format_progress is not None and format_progress & FPI_SUPPORTED and (left := format_progress & FPI_LEFT):
        yield f"formats itself ({left} % left)"
