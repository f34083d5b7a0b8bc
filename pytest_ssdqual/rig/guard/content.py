"""Content of drives beyond the signatures that a survey finds: samples of their data, and names in configuration files.

The result is a ``Topology`` with additional signatures (``consent.FOUND``), so that the guard, the recheck before a
destructive step and the check of a leftover array treat all content alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from pytest_ssdqual.rig.drives.topology import Node, Signature, Topology, plain_uuid
from pytest_ssdqual.rig.guard import configured_names, label, sampling
from pytest_ssdqual.rig.guard.consent import DATA, NAMED, UNREADABLE
from pytest_ssdqual.rig.guard.sampling import DeviceSample
from pytest_ssdqual.rig.machine.machine import Machine


def examined(
    machine: Machine,
    topology: Topology,
    knames: Iterable[str],
    known_uuids: Collection[str] = (),
    *,
    names: bool = False,
    spend_s: float = sampling.AGAIN_S,
) -> Topology:
    """The topology with the content of these devices (whole drives, arrays) and of every other path to them.

    ``known_uuids`` are UUIDs of arrays that earlier runs created, in any spelling: the label on such an array must name
    it. ``names``: add names in configuration files. ``spend_s``: seconds for samples of each device. One command; three
    with ``names``. ``RigError`` if an answer is incomplete.
    """
    nodes = _with_twins(topology, knames)
    sizes = {f"/dev/{node.kname}": node.size_bytes for node in nodes if node.size_bytes > 0 and not node.is_silent}
    samples = sampling.take(machine, sizes, spend_s)
    arrays = {array.kname: array.uuid for array in topology.arrays if array.uuid}
    own_uuids = frozenset(filter(None, map(plain_uuid, known_uuids)))
    nodes_by_name, members = dict(topology.nodes), list[str]()
    for node in nodes:
        signs: list[Signature] = []
        if sample := samples.get(f"/dev/{node.kname}"):
            uuid = arrays.get(node.kname, "")
            identity = node.wwn or node.serial
            owners = [label.of_drive(identity)] if identity else []
            if uuid in own_uuids:
                owners = [label.of_array(uuid)]
            is_owned = label.is_owned(sample, owners)
            signs = list(_signs(sample, is_owned=is_owned))
            if is_owned and label.is_member(sample):
                members.append(node.kname)
            if is_owned:  # what is allocated is this program's own
                node = replace(node, allocated=None)
        elif node.kname in arrays:
            signs = [Signature(UNREADABLE, detail="(the array has no capacity)")]
        nodes_by_name[node.kname] = replace(node, signatures=(*node.signatures, *signs))
    for path, offset in label.used(machine, [f"/dev/{kname}" for kname in members], own_uuids).items():
        node = nodes_by_name[path.removeprefix("/dev/")]
        sign = Signature(DATA, detail=f"(of the array that it is a member of, at byte {offset})")
        nodes_by_name[node.kname] = replace(node, signatures=(*node.signatures, sign))
    topology = replace(topology, nodes=nodes_by_name)
    return _with_names(machine, topology, [node.kname for node in nodes]) if names else topology


def _with_twins(topology: Topology, knames: Iterable[str]) -> list[Node]:
    known_names = [kname for kname in knames if kname in topology.nodes]
    twins = [twin.kname for kname in known_names for twin in topology.twins(kname) if twin.type == "disk"]
    return [topology.nodes[kname] for kname in sorted({*known_names, *twins})]


def _signs(sample: DeviceSample, *, is_owned: bool) -> Iterator[Signature]:
    if sample.errors:
        offset, why = sample.errors[0]
        yield Signature(UNREADABLE, detail=f"({why} at byte {offset})")
    if sample.first_data is not None and not is_owned:
        yield Signature(DATA, detail=f"(first at byte {sample.first_data})")


def _with_names(machine: Machine, topology: Topology, knames: list[str]) -> Topology:
    nodes = dict(topology.nodes)
    for kname, namings in configured_names.names(machine, topology).items():
        if kname in knames:
            files = {naming.file: naming for naming in reversed(namings)}
            signs = [Signature(NAMED, file, f"in {file} ({naming.text})") for file, naming in reversed(files.items())]
            nodes[kname] = replace(nodes[kname], signatures=(*nodes[kname].signatures, *signs))
    return replace(topology, nodes=nodes)
