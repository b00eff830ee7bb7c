"""Bars as inline SVG: lengths in per cent and heights in pixels, so that text keeps its size."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

ROW = 22  # pixels that a bar takes, with the space below it
GROUP = 10  # between groups
LEFT, WIDTH = 27.0, 58.0  # per cent: where bars begin, and how long the longest may be


@dataclass(frozen=True)
class Bar:
    """One bar: its series (a number, for its colour), its value, and what stands at its end."""

    series: int
    value: float
    text: str


@dataclass(frozen=True)
class Plot:
    """Groups of bars by their labels. `lines` are values to compare with, and their labels."""

    title: str
    groups: tuple[tuple[str, tuple[Bar, ...]], ...]
    most: float
    series: tuple[str, ...] = ()
    lines: tuple[tuple[float, str], ...] = ()


def svg(plot: Plot) -> str:
    top = 20 if plot.lines else 4
    y = top
    parts = []
    for label, bars in plot.groups:
        middle = y + ROW * len(bars) / 2
        parts.append(f'<text class="label" x="0" y="{middle + 2:g}">{escape(label)}</text>')
        for bar in bars:
            length = WIDTH * bar.value / plot.most
            parts.append(
                f'<rect class="s{bar.series}" x="{LEFT}%" y="{y}" width="{length:.2f}%" '
                f'height="{ROW - 5}"/>'
                f'<text x="{LEFT + length:.2f}%" dx="5" y="{y + 13}">{escape(bar.text)}</text>'
            )
            y += ROW
        y += GROUP
    for value, label in plot.lines:
        x = f"{LEFT + WIDTH * value / plot.most:.2f}%"
        parts.append(
            f'<line x1="{x}" x2="{x}" y1="{top - 2}" y2="{y - GROUP}"/>'
            f'<text class="mark" x="{x}" y="12">{escape(label)}</text>'
        )
    said = f"{plot.title}. " + " ".join(
        f"{label}: {', '.join(bar.text for bar in bars)}." for label, bars in plot.groups
    )
    keys = "".join(
        f'<span><i class="s{number}"></i>{escape(name)}</span>'
        for number, name in enumerate(plot.series)
    )
    legend = f'<p class="legend">{keys}</p>' if keys else ""
    return (
        f'<figure class="plot"><figcaption>{escape(plot.title)}</figcaption>{legend}'
        f'<svg role="img" aria-label="{escape(said, quote=True)}" width="100%" '
        f'height="{y - GROUP + 2}">{"".join(parts)}</svg></figure>'
    )
