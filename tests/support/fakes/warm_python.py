"""Python interpreters that have imported everything before they begin: an interpreter and its imports take 2 s of CPU
time, and the plugin's tests start 300 of them, for xdist's workers and for sessions in processes of their own.

``server()`` starts a process that imports pytest and the package, with pytest's rewritten assertions, and waits. Its
``python`` is a program to be called as ``python -u -c CODE`` or ``python -m MODULE ARGUMENTS``. That program passes its
arguments, environment, directory and standard streams to the server through a socket and lives as long as the process
that the server forks. It ends with the exit status of that process, and kills it when it is killed itself. Whatever
is about imports, memory or signals needs ``REAL``, a fresh interpreter.
"""

from __future__ import annotations

import contextlib
import gc
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[2]
REAL = sys.executable
#: Run with -I -S: it imports as little as possible.
CLIENT = """#!{python} -IS
import _socket, os, sys, signal
from array import array
road = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
road.connect({address!r})
request = "\\0".join([os.getcwd(), str(len(sys.argv)), *sys.argv, *map("=".join, os.environ.items())])
data = os.fsencode(request)
road.sendmsg([len(data).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", [0, 1, 2]))])
while data:
    data = data[road.send(data):]
for descriptor in (0, 1, 2):  # only the forked process has the other ends of pipes
    os.close(descriptor)
answer = road.recv(64)
status = int(answer) if answer else 1
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


@dataclass(frozen=True)
class ProcessRequest:
    """What one process is to be."""

    directory: str
    argv: tuple[str, ...]
    environment: dict[str, str]
    streams: tuple[int, ...]


@contextmanager
def server(place: Path) -> Iterator[str]:
    """Path of the program that stands for ``sys.executable``; ``place`` is a folder of its own, with a short path."""
    address = place / "warm"
    client = place / "python"
    client.write_text(CLIENT.format(python=REAL, address=str(address)))
    client.chmod(0o755)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))}
    with socket.socket(socket.AF_UNIX) as listener:
        # Who asks before everything is imported waits until it is.
        listener.bind(str(address))
        listener.listen(64)
        argv, number = [REAL, "-m", "support.fakes.warm_python"], listener.fileno()
        process = subprocess.Popen(
            [*argv, str(number)],
            stdin=subprocess.PIPE,
            cwd=place,
            env=environment,
            pass_fds=(number,),
            start_new_session=True,
        )
    try:
        yield str(client)
    finally:
        process.communicate()


def load() -> None:
    """Import what sessions import, as pytest imports it."""
    import importlib
    import pkgutil

    from _pytest.config import _prepareconfig

    Path("pytest.ini").write_text("[pytest]\nssd_page = false\n")
    config = _prepareconfig(["-p", "no:cacheprovider", "-p", "support.simulator.simulated_rig"])
    try:
        for name in ("numpy", "scipy.special", "scipy.stats", "scipy.optimize", "pydantic", "jinja2", "hypothesis"):
            importlib.import_module(name)
        for name in ("execnet.gateway_base", "xdist.remote", "xdist.dsession", "matplotlib.figure"):
            importlib.import_module(name)
        import pytest_ssdqual

        for module in pkgutil.walk_packages(pytest_ssdqual.__path__, "pytest_ssdqual."):
            is_script = module.name.endswith("__main__") or ".rig.scripts" in module.name
            if not is_script and ".suites." not in module.name:
                importlib.import_module(module.name)
    finally:
        config._ensure_unconfigure()


def serve(listener: socket.socket) -> ProcessRequest | None:
    """Fork a process for each request; the request in such a process, None in the server when its input ends."""
    # Waited for, so that their CPU time is in the sum of the tests'.
    signal.signal(signal.SIGCHLD, lambda *_: reap())
    awaited: list[socket.socket | int] = [listener, 0]
    while True:
        ready, _, _ = select.select(awaited, [], [])
        if listener not in ready:
            return None
        road, _ = listener.accept()
        if os.fork():
            road.close()
            continue
        listener.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return attend(road)


def reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def attend(road: socket.socket) -> ProcessRequest:
    """Fork the process itself, and end as soon as it has ended, or its client."""
    request = received(road)
    child = os.fork()
    if child == 0:
        road.close()
        return request
    for descriptor in (0, 1, 2, *request.streams):
        os.close(descriptor)
    handle = os.pidfd_open(child)
    awaited: list[socket.socket | int] = [handle, road]
    ready, _, _ = select.select(awaited, [], [])
    if handle not in ready:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        road.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def received(road: socket.socket) -> ProcessRequest:
    head, streams, _, _ = socket.recv_fds(road, 8, 3)
    count = int.from_bytes(head, "big")
    data = b""
    while len(data) < count:
        data += road.recv(1 << 16)
    directory, words, *rest = os.fsdecode(data).split("\0")
    argv, environment = rest[1 : int(words)], rest[int(words) :]
    return ProcessRequest(directory, tuple(argv), dict(each.split("=", 1) for each in environment), tuple(streams))


def become(request: ProcessRequest) -> Callable[[], Any]:
    """Make this process the one that was asked for; what it does."""
    for number, descriptor in enumerate(request.streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    stdin = open(0, closefd=False)  # noqa: SIM115
    stdout, stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
    stdout.reconfigure(line_buffering=stdout.isatty())
    stderr.reconfigure(line_buffering=True)
    sys.stdin, sys.stdout, sys.stderr = stdin, stdout, stderr
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = stdin, stdout, stderr  # type: ignore[misc]  # they are Final
    os.chdir(request.directory)
    os.environ.clear()
    os.environ.update(request.environment)
    more = [each for each in request.environment.get("PYTHONPATH", "").split(os.pathsep) if each]
    sys.path[:] = ["", *more, *(each for each in sys.path if each not in more)]
    words = list(request.argv)
    while words and words[0] == "-u":
        stdout.reconfigure(write_through=True)
        words.pop(0)
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        return lambda: exec(words[1], {"__name__": "__main__"})  # noqa: S102
    if not words[0].startswith("-m"):
        raise ValueError(f"neither -c nor -m: {words}")
    module, arguments = (words[0][2:], words[1:]) if words[0] != "-m" else (words[1], words[2:])
    sys.argv = [module, *arguments]
    sys.path[0] = request.directory
    return lambda: runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    load()
    # A collection that visits everything imported would cost each process half a second.
    gc.collect()
    gc.freeze()
    if asked := serve(socket.socket(fileno=int(sys.argv[1]))):
        become(asked)()
