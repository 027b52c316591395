"""Words for messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

LONGEST = 500
"""Characters of a line that a person reads."""
UNSHOWN = re.compile(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\uffef\U00010000-\U0010ffff]")
"""Characters that a terminal acts on, or cannot show."""
UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that no name can have: XML cannot hold them, or a terminal acts on them."""


def format_one_line(reason: object) -> str:
    """A reason in one line that can be shown anywhere: the middle of a long one is left out."""
    text = UNSHOWN.sub(lambda found: repr(found[0])[1:-1], " ".join(str(reason).split()))
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - 200]} [...] {text[-190:]}"


def quote_key(name: str) -> str:
    """A name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def suggest_nearest(word: str, choices: Iterable[str]) -> str:
    """``"; did you mean 'x'?"``, or the choices where none is near."""
    known = list(choices)
    # beyond some length it is not a typing error, and the search would take hours
    close = get_close_matches(word, known, n=1, cutoff=0.6) if len(word) <= LONGEST else []
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; choose from {', '.join(known)}" if known else ""


def format_combination(terms: Iterable[tuple[float, str]]) -> str:
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


def format_count(count: int, word: str) -> str:
    """``1 log``, ``2 logs``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def format_series(names: Sequence[str]) -> str:
    """Names in words, three or more that count up as one series: ``Ia1 ... Ia6, off2``."""
    series: dict[str, list[str]] = {}
    for name in names:
        stem = name.rstrip("0123456789")
        number = name[len(stem) :]
        own = series.get(f"{stem}{int(number) - 1}", []) if number else []
        own.append(name)
        series[name] = own
    shown = (
        f"{own[0]} ... {own[-1]}" if len(own) > 2 else name for name, own in series.items()
    )  # fmt: skip
    return ", ".join(dict.fromkeys(shown))
