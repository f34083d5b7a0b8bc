"""A ``Machine`` that answers from a script: what ``rig`` asks is recorded, what it hears is canned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pytest_ssdqual.rig.machine.machine import CommandFailed, Completed, MustFinish, Tethered
from support.fakes.bound_commands import bound_to, unbound
from support.simulator.simulated_content import Contents

Answer = str | Completed | Exception | Callable[[tuple[str, ...]], "str | Completed"]


def completed(argv: Sequence[str], stdout: str = "", status: int = 0, stderr: str = "") -> Completed:
    return Completed(tuple(argv), status, stdout.encode(), stderr.encode(), "2026-01-01T00:00:00+00:00", 0.0)


class CommandsOnly:
    """What a machine has besides ``run``, where nothing runs for long."""

    name: str = "fake"
    generation: int = 0
    token: str = "ab"  # noqa: S105 (of file names)

    def tether(self, argv: Sequence[str], *, first_signal: str = "INT", announces: bool = False) -> Tethered:
        raise NotImplementedError("nothing runs for long on this machine")

    def unfinished(self) -> tuple[str, ...]:
        return ()

    def leave_unfinished(self) -> None:
        """Nothing must finish."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class ScriptedMachine(CommandsOnly):
    """Answers by the longest matching argv prefix; an argv nobody foresaw is an error of the test.

    Of a command that is bound to its drives, it is asked the command itself, and ``bound`` tells to which.
    """

    answers: dict[tuple[str, ...], Answer] = field(default_factory=dict)
    name: str = "scripted"
    generation: int = 0
    token: str = "ab"  # noqa: S105 (of file names)
    asked: list[tuple[str, ...]] = field(default_factory=list)
    #: ``alone`` or ``beside``, the device's path, and the first two words of what is run on it.
    bound: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)

    #: What samples of its devices show, unless ``answers`` has something to say to that.
    contents: Contents = field(default_factory=Contents)

    #: What nothing may cut short.
    must_finish: list[MustFinish] = field(default_factory=list)

    def on(self, *prefix: str, answer: Answer = "") -> ScriptedMachine:
        self.answers[prefix] = answer
        return self

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float = 60.0,
        check: bool = True,
        stdin: bytes | None = None,
        repeatable: bool = False,
        must_finish: MustFinish | None = None,
    ) -> Completed:
        if must_finish:
            self.must_finish.append(must_finish)
        how, paths = bound_to(argv)
        argv = unbound(argv)
        self.bound += [(how, path, argv[:2]) for path in paths]
        self.asked.append(argv)
        matching = [prefix for prefix in self.answers if argv[: len(prefix)] == prefix]
        if all(len(prefix) < 3 for prefix in matching):  # no answer to this very script
            said = self.contents.answer(argv, stdin)
            if said is not None:
                return replace(completed(argv), stdout=said)
        if not matching:
            raise LookupError(f"the script has no answer for {argv}")
        answer = self.answers[max(matching, key=len)]
        if callable(answer):
            answer = answer(argv)
        if isinstance(answer, Exception):
            raise answer
        done = answer if isinstance(answer, Completed) else completed(argv, answer)
        if check and done.status:
            raise CommandFailed(f"{argv[0]} exited with {done.status}: {done.errors.strip()}", done)
        return done
