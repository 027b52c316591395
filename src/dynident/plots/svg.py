"""Figures as elements of a page, the same bytes for the same input."""

from __future__ import annotations

import base64
import re
from io import BytesIO
from typing import TYPE_CHECKING

from dynident.plots.style import PNG_DPI

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST = 300_000
"""Characters beyond which an SVG is replaced by a PNG."""


def render_figure(figure: Figure, name: str) -> str:
    """A figure as an SVG element with ids of its own, or as a PNG where it is large."""
    buffer = BytesIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    svg = inline_svg(buffer.getvalue().decode("utf-8"), re.sub(r"\W", "-", name, flags=re.ASCII))
    if len(svg) <= LARGEST:
        return svg
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=PNG_DPI, metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f'<img alt="" src="data:image/png;base64,{data}">'


def inline_svg(document: str, name: str) -> str:
    """An SVG document as an element of a page: no prolog, ids of its own, short numbers."""
    svg = document[document.index("<svg") :].strip()
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    # a hundredth of a point is more than a printer resolves
    return re.sub(r'\bd="[^"]+"', lambda path: _FINER.sub("", path.group()), svg)


_FINER = re.compile(r"(?<=\.\d\d)\d+")
