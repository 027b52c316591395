"""Words for messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, choices: Iterable[str]) -> str:
    """``"; did you mean 'x'?"``, or the choices where none is near."""
    known = list(choices)
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; choose from {', '.join(known)}" if known else ""


def combination(terms: Iterable[tuple[float, str]]) -> str:
    """``Izz1 + Ia1 - 0.0519 m3`` from coefficients and names; zero terms are left out."""
    text = ""
    for factor, name in terms:
        if factor == 0.0:
            continue
        size = abs(factor)
        body = name if abs(size - 1.0) < 5e-6 else f"{size:.3g} {name}"
        sign = ("-" if factor < 0 else "") if not text else (" - " if factor < 0 else " + ")
        text += sign + body
    return text or "0"
