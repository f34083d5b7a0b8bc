r"""Untrusted text made safe to show: on a terminal, in XML, JSON, a table, a file name.

A drive's firmware may report any name, and so may a file system, a process or a machine. Unprintable characters are
escaped: ``\x1b`` for control characters, ``\u202e`` for those that reverse or hide text, ``\xff`` for a byte that is
not UTF-8 (decoded with ``surrogateescape``). A blank is the only separator that is printed unescaped.

CI runners read commands from the log of a job, so the first character of a command is escaped as well:

- GitHub's runner, Gitea's and Forgejo's: ``::command`` at the start of a line, after blanks; ``##[command]`` anywhere.
- Azure Pipelines: ``##vso[...]`` anywhere, ``##[...]``. TeamCity: ``##teamcity[...]``.
- Buildkite: ``---``, ``+++``, ``~~~`` and ``^^^`` as the first word of a line.
- GitLab's section markers, Jenkins' console notes and Travis' folds need control characters, which never leave here.

GitHub's and Azure's runners compare as .NET does by default, which ignores characters without a glyph.

The rule of the module: nothing that leaves it holds a character for which ``str.isprintable`` is false or that has no
glyph, nor such a command, except the line ends of ``lines``; and it is never much longer than its bound.
"""

from __future__ import annotations

import hashlib
import re

#: Longest name: SCSI's longest is 252 characters, NVMe's 40.
NAME_CHARACTERS = 256
#: Longest line of a tool's output in a message.
LINE_CHARACTERS = 500
#: Most lines of a message.
MESSAGE_LINES = 200
#: Unicode's Default_Ignorable_Code_Point where ``str.isprintable`` is true: fillers and variation selectors.
_INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
#: Characters that are escaped everywhere, and the first character of a command that is a word of its own.
_ANYWHERE = re.compile(rf"[{_INVISIBLE}]|#(?=#)")
_COMMAND = r"(:(?=:)|([-+~^])(?=\3\3(?: |$)))"
_FIRST_WORD, _ANY_WORD = re.compile(rf"^( *){_COMMAND}"), re.compile(rf"(^|(?<= )){_COMMAND}")


def name(raw: str) -> str:
    """A name that distinguishes things, in one spelling: equal exactly if the raw names are.

    So it may be shown *and* compared, recorded and typed by a user. That a backslash is always part of an escape makes
    it exact; a name that is too long ends in its digest. No word of it is a command: it may be put first in a line.
    """
    shown = raw
    if "\\" in raw or not raw.isprintable():
        shown = "".join(_escaped(each) if each == "\\" or not each.isprintable() else each for each in raw)
    shown = _harmless(shown, _ANY_WORD)
    if len(shown) <= NAME_CHARACTERS:
        return shown
    digest = hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{shown[:64]}…\\sha256:{digest}"


def line(raw: str, most: int = LINE_CHARACTERS) -> str:
    """Text on one line, escaped only where necessary, so applying it twice changes nothing."""
    raw, cut = raw[: most + 1], len(raw) > most
    if not raw.isprintable():
        raw = "".join(each if each.isprintable() else _escaped(each) for each in raw)
    raw = _harmless(raw, _FIRST_WORD)
    return f"{raw[: most - 1]}…" if cut or len(raw) > most else raw


def lines(raw: str, most: int = LINE_CHARACTERS) -> str:
    """``line`` of each line of a message, which ends at a line feed and at nothing else."""
    each = raw.split("\n", MESSAGE_LINES)
    if len(each) > MESSAGE_LINES:
        each[MESSAGE_LINES] = "…"
    return "\n".join(line(one, most) for one in each)


def json_text(text: str) -> str:
    """JSON without characters that a terminal or a reader of lines interprets; its line ends stay.

    JSON itself escapes only C0: DEL, C1 (a terminal's other way to begin a sequence), U+2028 and lone surrogates are
    left, and so is what ``_ANYWHERE`` matches. They can occur only inside strings, where an escape means the same.
    """
    text = _ANYWHERE.sub(lambda found: _json_escape(found[0]), text)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else _json_escape(each) for each in text)


def _harmless(text: str, first: re.Pattern[str]) -> str:
    text = first.sub(lambda found: found[1] + _escaped(found[2]), text)
    return _ANYWHERE.sub(lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte, as ``surrogateescape`` keeps it
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
