"""What a module of remarks states of its own: the figures in its sentences."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType

REFERENCES = re.compile(
    r"""
    [Tt]ables?\ (\d+(\ and\ (the\ first\ of\ Table\ )?\d+)*)   # of a paper or a report
    | \(\d+\) | section\ \d+\.\d+                # equations and sections
    | [Ss]cenarios?\ \d(,\ \d)*(\ and\ \d)*      # the paper's scenarios
    | ardiani2024 | brunot2019 | TX40
    | \b(I[xyz]{2}|Ia|fc|fcm|fv|fvm|mx|my)\d\b   # parameters of a joint
    | \+?\.\d[efg]                               # how a number is set
    | ode3 | 3\ dB | Pi\^-1 | \ =\ [01]\b        # an integrator; a band; an identity
    | 2\ \|\{?                                   # 2 |Ixy|, of a body's second moments
    """,
    re.VERBOSE,
)
IN_WORDS = re.compile(
    r"\b(twice|half|halves|(a|one|two|three) (third|quarter|fifth|tenth|twentieth)s?|ten(fold)?"
    r"|several|dozens?)\b"
)


def figures_stated(module: ModuleType) -> list[str]:
    """Pieces of sentences with a figure that no computation has put there."""
    tree = ast.parse(Path(module.__file__).read_text())
    documented = (ast.Module, ast.FunctionDef, ast.ClassDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and isinstance(node.body[0], ast.Expr)
    }
    formats = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None
        for part in ast.walk(node.format_spec)
    }
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [
        node.value
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in docstrings | formats
        if re.search(r"\d", REFERENCES.sub("", node.value)) or IN_WORDS.search(node.value)
    ]
