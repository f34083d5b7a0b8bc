"""Records of a run as a whole: its tests, and the health of its drives. Those of results are in ``qual.measured``."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_ssdqual.qual.frozen import frozen


@frozen
class HealthRecord:
    """``health``: of one drive, before or after."""

    #: Identity of the drive.
    drive: str
    when: str
    #: File with the whole answer of smartctl.
    raw: str
    passed: bool | None
    temperature_c: int | None
    percentage_used: int | None
    critical_warning: int | None
    media_counts: Mapping[str, int]
    power_on_hours: int | None
    data_written_bytes: int | None
    counters: Mapping[str, int]
    media_errors: int | None


@frozen
class WorsenedDrive:
    """``drive_worsened``: a drive that failed, or whose health changed by more than its use explains."""

    #: Identity of the drive.
    drive: str
    #: Path, model and serial number.
    name: str
    findings: tuple[str, ...]
    #: Those of the findings that make the product unfit.
    defects: tuple[str, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(f"{self.name}: {finding}" for finding in self.findings)


@frozen
class PlannedClaims:
    """``claims_planned``: for how many claims the verdicts are corrected."""

    count: int
    #: The protocol's ``verdict.family``.
    control: str


@frozen
class PlannedTests:
    """``tests_planned``: what a collection added."""

    #: Ids of tests that will run and that no earlier session had.
    tests: tuple[str, ...]
    #: Claims that each test declares.
    claims: tuple[tuple[str, ...], ...]
    #: Ids of applicable tests of the same suites that will not run.
    left_out: tuple[str, ...]
    #: Claims that the spec promises.
    promised: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.tests) != len(self.claims):
            raise ValueError(f"{len(self.tests)} tests with the claims of {len(self.claims)}")
