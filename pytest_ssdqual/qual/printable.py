r"""Text from outside, made fit to be shown: by a terminal, in XML, JSON, a table, a file's name. Pure.

A drive's firmware may call itself anything, and so may a file system, a process or a machine. What cannot be printed
is written as an escape: ``\x1b`` for control characters, ``\u202e`` for what turns or hides text, ``\xff`` for a byte
that is not UTF-8 (decoded with ``surrogateescape``). A blank is the only separator that is printed as itself.

The rule of the module: nothing that leaves it holds a character for which ``str.isprintable`` is false, except the line
ends of ``lines``; and it is never much longer than its bound.
"""

from __future__ import annotations

import hashlib

#: Of a name: SCSI's longest is 252 characters, NVMe's 40.
NAME_CHARACTERS = 256
#: Of a line: what a person reads of a tool's last words.
LINE_CHARACTERS = 500
#: Of a message of many lines.
MESSAGE_LINES = 200


def name(raw: str) -> str:
    """A name that tells things apart, in one spelling: equal exactly if the raw names are.

    So it may be shown *and* compared, recorded and typed by a user. That a backslash is always part of an escape makes
    it exact; a name that is too long ends in its digest.
    """
    shown = "".join(_escaped(each) if each == "\\" or not each.isprintable() else each for each in raw)
    if len(shown) <= NAME_CHARACTERS:
        return shown
    digest = hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{shown[:64]}…\\sha256:{digest}"


def line(raw: str, most: int = LINE_CHARACTERS) -> str:
    """Words to be read, on one line; what is printable stays as it is, so doing it twice changes nothing."""
    raw, cut = raw[: most + 1], len(raw) > most
    if not raw.isprintable():
        raw = "".join(each if each.isprintable() else _escaped(each) for each in raw)
    return f"{raw[: most - 1]}…" if cut or len(raw) > most else raw


def lines(raw: str, most: int = LINE_CHARACTERS) -> str:
    """``line`` of each line of a message, which ends at a line feed and at nothing else."""
    each = raw.split("\n", MESSAGE_LINES)
    if len(each) > MESSAGE_LINES:
        each[MESSAGE_LINES] = "…"
    return "\n".join(line(one, most) for one in each)


def json_text(text: str) -> str:
    """JSON with nothing in it that a terminal or a reader of lines takes for more than text; its line ends stay.

    JSON itself escapes only C0: DEL, C1 (a terminal's other way to begin a sequence), U+2028 and lone surrogates are
    left. They can occur only inside of strings, where an escape means the same.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else _json_escape(each) for each in text)


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
