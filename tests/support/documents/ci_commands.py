"""Commands that CI runners read from the log of a job, detected as the runners' own parsers do."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import strategies as st

#: Commands that end a job as a success, disable later commands, hide lines, and the like.
COMMANDS = (
    "##vso[task.complete result=Succeeded;]", "::stop-commands::x", "##[group]", "##[endgroup]", "::add-mask::a",
    "::error file=a,line=1::b", "  ::set-output name=a::b", "##teamcity[buildStatus status='SUCCESS']", "--- x",
    "+++ x", "~~~ x", "^^^ +++", "+++", "###vso[task.setvariable variable=PATH]x", "a ##vso[task.logissue]b",
    "#\ufe0f#vso[task.complete result=Succeeded;]", "\ufe0f::stop-commands::x", ":\u034f:stop-commands::x",
    "section_start:1560896352:a\r\x1b[0K", "travis_fold:start:a\r\x1b[0K", "\x1b[8mha:AAAA\x1b[0m",
)  # fmt: skip
SPLINTERS = (
    "#",
    "##",
    ":",
    "::",
    "[",
    "]",
    "vso",
    "-",
    "---",
    "+++",
    "^^^",
    "~~~",
    " ",
    "\n",
    "\ufe0f",
    "\\",
    "a",
    "…",
)
TEXTS = st.sampled_from(COMMANDS) | st.lists(st.sampled_from((*COMMANDS, *SPLINTERS)), max_size=8).map("".join)
#: .NET's default comparison ignores these; as ``unicodedata`` has no such property, by their names.
IGNORED = re.compile(r"VARIATION SELECTOR|GRAPHEME JOINER|FILLER|VOWEL INHERENT|FREE VARIATION")
SECTIONS = re.compile(r"section_(?:start|end):\d+:[\w.-]+(?:\[.*?\])?\r\x1b\[0K|\x1b\[8mha:|travis_fold:\w+:\S+\r\x1b")
BUILDKITE = re.compile(r"(?:---|\+\+\+|~~~|\^\^\^)(?: |$)")


def commands_in(text: str) -> list[str]:
    """Return the lines of a log that a runner takes for commands."""
    found = SECTIONS.findall(text)
    for raw in re.split(r"[\r\n]", text):
        line = "".join(each for each in raw if not IGNORED.search(unicodedata.name(each, "")))
        is_command = line.lstrip().startswith("::") or re.search(r"##(?:vso|teamcity)?\[", line)
        if is_command or BUILDKITE.match(line.lstrip()):
            found.append(raw)
    return found
