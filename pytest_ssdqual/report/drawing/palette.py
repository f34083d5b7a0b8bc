"""Colours, dashes and markers of charts, for light and dark paper.

Colours are names in the picture and values in ``html/templates/palette.css``, for light and dark paper. The series
derive from Okabe and Ito's set for all kinds of colour vision (2008), of which orange, sky blue and yellow have too
little contrast on white (2.2, 2.3 and 1.3 to 1), blue and black on dark. These are shades of the same hues, moved until
each has at least 3 to 1 on its paper (WCAG 2.1, 1.4.11) and any two of them, limit, published figure and ink included,
differ by at least 17 in CIELAB, also for people who lack one kind of cone (Machado, Oliveira, Fernandes 2009). Series
also differ in dash and marker.
"""

from __future__ import annotations

from collections.abc import Mapping

#: What matplotlib draws with, and what becomes of it. Each stands for nothing else, so none can be missed.
INK, LIMIT, PUBLISHED, BAND = "#010101", "#0100a1", "#0100a2", "#0100a3"
SERIES = tuple(f"#0100f{index}" for index in range(1, 9))
#: Outcomes, in the hues that tables of pages have for them.
GOOD, OPEN, BAD = SERIES[2], SERIES[1], LIMIT
VARIABLES: Mapping[str, str] = {
    INK: "currentColor",
    LIMIT: "var(--limit)",
    PUBLISHED: "var(--published)",
    BAND: "var(--band)",
    **{colour: f"var(--s{index})" for index, colour in enumerate(SERIES, start=1)},
}
#: Besides the colour, for those who do not see it and for print.
DASHES: tuple[str | tuple[float, tuple[float, ...]], ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (1.2, 1.4)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1)),
    (0, (8, 2)),
    (0, (2, 2)),
    (0, (9, 1.5, 1.2, 1.5, 1.2, 1.5)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def colour(index: int) -> str:
    """Return the colour of the n-th series for matplotlib; the ninth is that of the first."""
    return SERIES[index % len(SERIES)]
