"""Formulas of the guide as MathML, which browsers draw themselves: no script, no network.

The part of TeX that the guide uses; what is not known is an error. An extension of `conf.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\S|\s+", re.S)
LETTERS = {
    name: chr(code)
    for names, code in (
        ("alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi", 0x3B1),
        ("pi rho", 0x3C0), ("sigma tau upsilon varphi chi psi omega", 0x3C3),
    )
    for code, name in enumerate(names.split(), code)
} | {"epsilon": "ϵ", "phi": "ϕ", "ell": "ℓ", "partial": "∂", "nabla": "∇"}  # fmt: skip
LARGE = {
    name: chr(0x391 + k)
    for k, name in (
        (2, "Gamma"), (3, "Delta"), (7, "Theta"), (10, "Lambda"), (15, "Pi"), (18, "Sigma"),
        (21, "Phi"), (23, "Psi"), (24, "Omega"),
    )
}  # fmt: skip
SYMBOLS = {
    "cdot": "⋅", "times": "×", "pm": "±", "ge": "≥", "le": "≤", "ne": "≠", "in": "∈", "to": "→",
    "sim": "∼", "approx": "≈", "succ": "≻", "succeq": "⪰", "dots": "…", "mid": "∣",
    "leftarrow": "←", "Longleftrightarrow": "⟺", "Longrightarrow": "⟹", "%": "%",
}  # fmt: skip
FENCES = {
    "lVert": "‖", "rVert": "‖", "|": "‖", "lvert": "|", "rvert": "|", "langle": "⟨",
    "rangle": "⟩", "lceil": "⌈", "rceil": "⌉", "lfloor": "⌊", "rfloor": "⌋", "{": "{", "}": "}",
}  # fmt: skip
LARGE_OPERATORS = {"sum": "∑", "prod": "∏", "int": "∫"}
FUNCTIONS = ("exp", "ln", "log", "cos", "sin", "tanh", "arg", "det", "min", "max")
WITH_LIMITS = ("det", "min", "max")
SPACES = {",": 0.17, ";": 0.28, " ": 0.25, "quad": 1.0, "qquad": 2.0}
ACCENTS = {"dot": "˙", "ddot": "¨", "hat": "^", "bar": "¯", "tilde": "~", "overline": "‾"}
SIZES = {"bigl": 1.2, "bigr": 1.2, "Big": 1.8, "Bigl": 1.8, "Bigr": 1.8}
MATRICES = ("bmatrix", "pmatrix", "cases", "aligned")
BLOCK = "overflow: auto hidden; padding: 0.3em 0"
TICK = "linear-gradient(currentColor, currentColor)"
DRAWN = {
    # brackets stretch by a font for formulas alone, which need not be there: lines are drawn
    "bmatrix": "border: solid; border-width: 0 1px; padding: 0 0.2em; background: "
    + ", ".join(
        f"{TICK} {x} {y} / 0.3em 1px no-repeat" for x in ("0", "100%") for y in ("0", "100%")
    ),
    "pmatrix": "border: solid; border-width: 0 1px; border-radius: 0.6em; padding: 0 0.2em",
    "cases": "border: solid; border-width: 0 0 0 1px; border-radius: 0.6em; padding: 0 0.3em",
    "aligned": "",
}
"""How a matrix is set in brackets."""
SCRIPT = {"B": "ℬ", "E": "ℰ", "F": "ℱ", "H": "ℋ", "I": "ℐ", "L": "ℒ", "M": "ℳ", "R": "ℛ"}
ALPHABETS = {
    # Latin capitals, Latin small letters, digits, Greek capitals, Greek small letters
    "mathbf": (0x1D400, 0x1D41A, 0x1D7CE, 0x1D6A8, 0x1D6C2),
    "boldsymbol": (0x1D468, 0x1D482, 0x1D7CE, 0x1D71C, 0x1D736),
    "mathtt": (0x1D670, 0x1D68A, 0x1D7F6, None, None),
    "mathcal": (0x1D49C, None, None, None, None),
}


class UnknownFormulaError(ValueError):
    """TeX that is not among what the guide uses."""


def change_alphabet(letter: str, style: str) -> str:
    """A letter in an alphabet of its own, as MathML has them: by characters."""
    if style == "mathcal" and letter in SCRIPT:
        return SCRIPT[letter]
    for begin, first, count in zip("Aa0Αα", ALPHABETS[style], (26, 26, 10, 25, 25), strict=True):
        place = ord(letter) - ord(begin)
        if 0 <= place < count and first is not None:
            return chr(first + place)
    if letter == "ϕ" and style in ("mathbf", "boldsymbol"):
        return {"mathbf": "\U0001d6df", "boldsymbol": "\U0001d753"}[style]
    if letter in "ℓ∂∇":
        return letter
    raise UnknownFormulaError(f"\\{style}{{{letter}}}")


def write(tag: str, *inside: str, **attributes: str) -> str:
    """An element."""
    told = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<{tag}{told}>{''.join(inside)}</{tag}>"


def write_operator(text: str, **attributes: str) -> str:
    """An operator or a fence."""
    return write("mo", escape(text), **attributes)


class Reader:
    """Reads a formula from its tokens."""

    def __init__(self, text: str) -> None:
        self.tokens = [t for t in TOKEN.findall(text) if not t.isspace()]
        self.text, self.at, self.style = text, 0, ""

    @property
    def next(self) -> str:
        """The token that comes; nothing at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        """The same, and go on."""
        token = self.next
        if not token:
            raise UnknownFormulaError(f"{self.text!r} ends too early")
        self.at += 1
        return token

    def read_until(self, *ends: str) -> str:
        """All up to one of these tokens, which stays."""
        found: list[str] = []
        while self.next not in ends:
            found.append(self.read_with_scripts())
        return found[0] if len(found) == 1 else write("mrow", *found)

    def read_argument(self) -> str:
        """A group in braces, or what one token is; of a number its first digit."""
        if self.next.isdigit():
            self.tokens[self.at : self.at + 1] = [*self.next]
        if self.next != "{":
            return self.read_atom()
        self.take()
        found = self.read_until("}")
        self.take()
        return found

    def take_words(self) -> str:
        """The words of a group, as they stand, or a letter; tokens have lost their spaces."""
        if self.take() != "{":
            return self.tokens[self.at - 1]
        begin, depth = self.at, 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self.take(), 0)
        words = "".join(self.tokens[begin : self.at - 1])
        loose = r"\s*".join(map(re.escape, self.tokens[begin : self.at - 1]))
        kept = re.search(rf"\{{({loose}\s*)\}}", self.text)
        return (kept[1] if kept else words).replace("\\_", "_").replace("\\ ", " ")

    def read_with_scripts(self) -> str:
        """An atom with what stands above and below it."""
        limits = self.next[1:] in (*LARGE_OPERATORS, *WITH_LIMITS, "underbrace")
        limits &= self.next != "\\int"
        base = self.read_atom()
        scripts: dict[str, str] = {}
        while self.next in ("_", "^", "'"):
            kind = self.take()
            if kind == "'":
                scripts["^"] = scripts.get("^", "") + write_operator("′")
            else:
                scripts[kind] = scripts.get(kind, "") + self.read_argument()
        own = {kind: write("mrow", inside) for kind, inside in scripts.items()}
        tag = "".join(
            name
            for kind, name in zip("_^", ("under", "over") if limits else ("sub", "sup"))
            if kind in own
        )
        order = [own[kind] for kind in "_^" if kind in own]
        return write(f"m{tag}", base, *order) if tag else base

    def read_atom(self) -> str:
        """A letter, a number, an operator, or what a command makes."""
        token = self.take()
        if token.startswith("\\"):
            return self.read_command(token[1:])
        if token == "{":
            self.at -= 1
            return self.read_argument()
        if token.isalpha():
            return self.write_letter(token)
        if token[0].isdigit():
            digits = "".join(change_alphabet(d, self.style) for d in token) if self.style else token
            return write("mn", digits)
        if token in "&}$#":
            raise UnknownFormulaError(f"{token} in {self.text!r}")
        fence = {"stretchy": "false"} if token in "()[]|/" else {}
        return write_operator({"-": "−", "*": "∗"}.get(token, token), **fence)

    def write_letter(self, letter: str, upright: bool = False) -> str:
        """A letter of the style that holds."""
        if self.style in ALPHABETS:
            return write("mi", change_alphabet(letter, self.style))
        if upright or self.style:
            return write("mi", letter, mathvariant="normal")
        return write("mi", letter)

    def read_command(self, name: str) -> str:
        """What a command and its arguments make."""
        if name in LETTERS or name in LARGE:
            return self.write_letter({**LETTERS, **LARGE}[name], upright=name in LARGE)
        if name in SYMBOLS:
            return write_operator(SYMBOLS[name])
        if name in FENCES:
            return write_operator(FENCES[name], stretchy="false")
        if name in LARGE_OPERATORS:
            return write_operator(LARGE_OPERATORS[name])
        if name in FUNCTIONS:
            kind = {"movablelimits": "true"} if name in WITH_LIMITS else {}
            return write_operator(name, form="prefix", lspace="0.17em", rspace="0.17em", **kind)
        if name in SPACES:
            return write("mspace", width=f"{SPACES[name]}em")
        if name in ALPHABETS:
            before, self.style = self.style, name
            found = self.read_argument()
            self.style = before
            return found
        if name in ("mathrm", "operatorname", "text"):
            words = escape(self.take_words()).replace(" ", "\u00a0")
            tag = "mtext" if name == "text" else "mi"
            return write(tag, words, **({} if tag == "mtext" else {"mathvariant": "normal"}))
        if name in ("frac", "tfrac", "dfrac"):
            return write("mfrac", self.read_argument(), self.read_argument())
        if name in ACCENTS:
            mark = write_operator(ACCENTS[name], stretchy=str(name == "overline").lower())
            return write("mover", self.read_argument(), mark, accent="true")
        if name in SIZES:
            size = f"{SIZES[name]}em"
            return write_operator(self.take_fence(), stretchy="true", minsize=size, maxsize=size)
        return self.read_structure(name)

    def take_fence(self) -> str:
        """A bracket; nothing for a point."""
        token = self.take()
        return FENCES[token[1:]] if token.startswith("\\") else token.replace(".", "")

    def read_structure(self, name: str) -> str:
        """What has parts of its own."""
        if name == "sqrt":
            return write("msqrt", self.read_argument())
        if name == "left":
            opened = write_operator(self.take_fence(), stretchy="true")
            inside = self.read_until("\\right")
            self.take()
            return write("mrow", opened, inside, write_operator(self.take_fence(), stretchy="true"))
        if name == "underbrace":
            return write("munder", self.read_argument(), write_operator("⏟", stretchy="true"))
        if name == "boxed":
            return write("mrow", self.read_argument(), style="border: 1px solid; padding: 0.3em")
        if name == "tag":
            words = escape(self.take_words())
            return write("mspace", width="2em") + write("mtext", f"({words})")
        if name == "begin":
            return self.read_rows(self.take_words())
        raise UnknownFormulaError(f"\\{name} in {self.text!r}")

    def read_rows(self, kind: str) -> str:
        """A matrix, cases or aligned lines."""
        if kind not in MATRICES:
            raise UnknownFormulaError(f"\\begin{{{kind}}}")
        rows: list[list[str]] = [[]]
        while True:
            rows[-1].append(self.read_until("&", "\\\\", "\\end"))
            mark = self.take()
            if mark == "\\\\":
                rows.append([])
            if mark == "\\end":
                break
        self.take_words()
        styles = {
            "aligned": ("text-align: right", "text-align: left"),
            "cases": ("text-align: left",) * 2,
        }.get(kind, ("", ""))
        lines = [
            write("mtr", *(write("mtd", cell, style=styles[k % 2]) for k, cell in enumerate(row)))
            for row in rows
            if row != [write("mrow")]
        ]
        told = {"displaystyle": "true"} if kind == "aligned" else {"style": DRAWN[kind]}
        return write("mtable", *lines, **told)


def convert(text: str, display: bool = False) -> str:
    """A formula as MathML, its TeX as what is read aloud where MathML is not."""
    reader = Reader(text.strip())
    inside = reader.read_until("")
    kind = {"display": "block"} if display else {}
    space = {"xmlns": "http://www.w3.org/1998/Math/MathML"}
    return write("math", inside, alttext=escape(" ".join(text.split())), **kind, **space)


def make_visit(display: bool) -> Callable[[Any, Any], None]:
    """What writes a formula's node."""

    def visit(writer: Any, node: Any) -> None:
        from docutils.nodes import SkipNode
        from sphinx.util.logging import getLogger

        try:
            found = convert(node.astext(), display)
        except UnknownFormulaError as error:
            getLogger(__name__).warning("formula: %s", error, location=node)
            raise SkipNode from error
        writer.body.append(f'<div style="{BLOCK}">{found}</div>' if display else found)
        raise SkipNode

    return visit


def setup(app: Any) -> dict[str, bool]:
    """The renderer, for Sphinx."""
    app.add_html_math_renderer("mathml", (make_visit(False), None), (make_visit(True), None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
