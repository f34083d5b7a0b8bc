"""The table ``lot`` of spec files, for pydantic. Imported only when a document is read."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from pytest_ssdqual.qual.lots import sampling_plan
from pytest_ssdqual.qual.lots.sampling_plan import ByAttributes, ByVariables, Plan
from pytest_ssdqual.qual.spec.schema import Percentage, Strict

#: What says how many drives to take and how many bad ones are too many, and what else may stand with it.
_KINDS: dict[frozenset[str], tuple[str, ...]] = {
    frozenset({"aql"}): ("inspection",),
    frozenset({"ltpd"}): ("accept",),
    frozenset({"aql", "ltpd"}): (),
    frozenset({"sample", "accept"}): (),
    frozenset({"sample", "k"}): (),
}
_ORIGIN = "as agreed"


class LotTable(Strict):
    """A lot of drives, and the plan by which a sample of them decides about it."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["aql"]},
                {"required": ["ltpd"]},
                {"required": ["sample", "accept"]},
                {"required": ["sample", "k"]},
            ]
        }
    )

    size: Annotated[int | None, Field(ge=2, description="Drives in the lot")] = None
    by: Annotated[
        Literal["attributes", "variables"],
        Field(description="Whether bad drives are counted, or the spread of the drives' figures is judged"),
    ] = "attributes"
    aql: Annotated[
        Percentage | None, Field(description="Acceptance quality limit: bad drives that are acceptable on average")
    ] = None
    inspection: Annotated[
        Literal["S-1", "S-2", "S-3", "S-4", "I", "II", "III"] | None,
        Field(description="Inspection level of ISO 2859-1; II if left out"),
    ] = None
    ltpd: Annotated[
        Percentage | None, Field(description="Bad drives of a lot that is to be accepted in one case of ten at most")
    ] = None
    sample: Annotated[int | None, Field(ge=1, description="Drives to be tested, of a plan of your own")] = None
    accept: Annotated[int | None, Field(ge=0, description="Bad drives with which the lot is still accepted")] = None
    k: Annotated[float | None, Field(gt=0, description="Acceptability constant of a plan by variables")] = None

    @model_validator(mode="after")
    def _is_a_plan(self) -> Self:
        self.plan()
        return self

    def plan(self) -> Plan:
        """ValueError with what is wrong if the keys make none."""
        given = {key for key in ("aql", "ltpd", "sample", "accept", "k") if getattr(self, key) is not None}
        kind = next((each for each, more in _KINDS.items() if each <= given <= each | set(more)), None)
        if kind is None:
            raise ValueError(
                "a plan is aql (with inspection), ltpd (with accept), both of them, sample with accept, or sample with "
                f"k; not {', '.join(sorted(given)) or 'nothing'}"
            )
        if self.inspection is not None and kind != {"aql"}:
            raise ValueError("an inspection level goes with aql alone")
        if kind == {"sample", "k"}:
            return self._by_variables()
        found = self._by_attributes(kind)
        if self.by == "attributes":
            return found
        if kind == {"aql", "ltpd"} and self.aql is not None and self.ltpd is not None:
            origin = f"by the s-method of ISO 3951, AQL {self.aql:g} %, LTPD {self.ltpd:g} %"
            good, bad = self.aql / 100, self.ltpd / 100
            return sampling_plan.variables_through_two_points(good, bad, origin, self.size, self.aql)
        return sampling_plan.as_variables(found)

    def _by_variables(self) -> ByVariables:
        if self.by != "variables":
            raise ValueError('k is of a plan with by = "variables"')
        return ByVariables(self.sample or 0, self.k or 0.0, f"by the s-method of ISO 3951, {_ORIGIN}", self.size)

    def _by_attributes(self, kind: frozenset[str]) -> ByAttributes:
        if kind == {"sample", "accept"}:
            return ByAttributes(self.sample or 0, self.accept or 0, _ORIGIN, self.size)
        aql, ltpd = self.aql or 0.0, self.ltpd or 0.0
        if kind == {"ltpd"}:
            return sampling_plan.for_limiting_quality(ltpd, self.size, self.accept or 0)
        if kind == {"aql", "ltpd"}:
            return sampling_plan.through_two_points(aql, ltpd, self.size)
        if self.size is None:
            raise ValueError("ISO 2859-1 finds the sample for an aql by the size of the lot: give size")
        return sampling_plan.indexed_by_aql(self.size, self.inspection or "II", aql)
