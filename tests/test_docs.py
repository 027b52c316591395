"""What the guide shows runs, parses and exists."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
import toy
from test_architecture import ROOMS
from test_report import identified

from dynident.cli import COMMANDS, run
from dynident.dynamics.idim import build_idim
from dynident.friction.models import FRICTIONS

TOP = Path(__file__).parents[1]
DOCS = TOP / "docs"
PAGES = sorted(
    p for p in DOCS.rglob("*.md") if not {"_build", "figures"} & set(p.relative_to(DOCS).parts)
)
TEXTS = [
    *(TOP / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")),
    *PAGES,
]

FENCE = re.compile(
    r"(?P<marks>(?:^<!-- [^\n]* -->\n)*)^(?P<fence>`{3,})(?P<info>[^\n`]*)\n"
    r"(?P<body>.*?)^(?P=fence)[ ]*$",
    re.M | re.S,
)
MARK = re.compile(r"^<!-- (runnable|file|needs)(?: ((?!-->)\S+))? -->$", re.M)
LINK = re.compile(r"(?<!`)(?:\[[^\]]*\]\((?!https?:)([^)\s]+)\)|\{download\}`[^<`]*<([^>`]+)>`)")
DOCUMENTED_COMMAND = re.compile(r"^(?:\$ )?(?:.*/bin/)?dynident (?!.*\.{3})(.+)$", re.M)
IMPORTED = re.compile(r"(?<![\w/.-])dynident(?:_papers)?(?:\.\w+)+(?![\w/])")
NAMED_FILE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.py)`")


@dataclass(frozen=True)
class Block:
    """A fenced block and what is asked of it."""

    line: int
    info: str
    body: str
    file: str | None = None
    runnable: bool = False
    needs: str | None = None
    code: int = 0


@cache
def can_import(name: str | None) -> bool:
    """Whether a module is installed, and what it needs itself."""
    try:
        return name is not None and import_module(name) is not None
    except ImportError:
        return False


def blocks(path: Path) -> Iterator[Block]:
    text = path.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        marks = dict(MARK.findall(match["marks"]))
        yield Block(
            line=text.count("\n", 0, match.start("body")) + 1,
            info=match["info"].strip(),
            body=match["body"],
            file=marks.get("file"),
            runnable="runnable" in marks or can_import(marks.get("needs")),
            needs=marks.get("needs"),
            code=int(marks.get("runnable") or 0),
        )


def commands(body: str) -> list[list[str]]:
    """Arguments of the dynident commands in a block, also behind ``&&``."""
    parts = [part.strip() for line in body.splitlines() for part in line.split("&&")]
    return [shlex.split(found) for part in parts for found in DOCUMENTED_COMMAND.findall(part)]


def identifier(path: Path) -> str:
    return str(path.relative_to(TOP))


@pytest.fixture(scope="session")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guide's arm and its two logs."""
    folder = tmp_path_factory.mktemp("arm")
    for file in (DOCS / "files").iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        exec(compile((folder / "make_logs.py").read_text(), "make_logs.py", "exec"), {})
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def desk(arm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory as the guide assumes it; registries that a page extends are restored."""
    from dynident import cli
    from dynident.consistency.constraints import CONSTRAINTS
    from dynident.consistency.prior import METRICS
    from dynident.control.controller import CONTROLLERS
    from dynident.control.reference import REFERENCES
    from dynident.diagnosis.diagnoses import DIAGNOSES
    from dynident.dynamics.limbs import SENSED
    from dynident.estimators.covariance import COVARIANCES
    from dynident.excitation.criteria import CRITERIA
    from dynident.export.formats import EXPORTS
    from dynident.fit.json import DOCUMENT
    from dynident.friction.models import FRICTIONS
    from dynident.methods import ESTIMATORS
    from dynident.readers import READERS
    from dynident.report.sections import SECTIONS
    from dynident.simulation.integrators import INTEGRATORS

    shutil.copytree(arm, tmp_path, dirs_exist_ok=True)
    (tmp_path / "examples").symlink_to(TOP / "examples")
    monkeypatch.chdir(tmp_path)
    registries: list[dict[str, Any]] = [CONSTRAINTS, CRITERIA, ESTIMATORS, READERS, FRICTIONS]
    registries += [cli.COMMANDS, CONTROLLERS, COVARIANCES, INTEGRATORS, METRICS, REFERENCES]
    registries += [DIAGNOSES, DOCUMENT, EXPORTS, SECTIONS, SENSED]
    saved = [dict(registry) for registry in registries]
    # a page adds a command as a file of the room
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path / "cli")])
    forget_commands()
    yield tmp_path
    forget_commands()
    for registry, entries in zip(registries, saved, strict=True):
        registry.clear()
        registry.update(entries)


def forget_commands() -> None:
    """Let commands be loaded again: flags of `export` are those of the registry at that time."""
    from dynident.cli import load_command

    load_command.cache_clear()
    sys.modules.pop("dynident.cli.export", None)


NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*[A-Za-z_])")
CLOSE = 0.03
"""Of numbers that searches end with on different processors, relative to the larger one."""
TINY = 1e-6
"""Below this, rounding and tails of distributions: any two numbers are alike."""
WITH_ERROR = re.compile(r"(-?\d+(?:\.\d+)?)\((\d+)\)")
"""A value and its standard deviation in units of its last digit: rounding may move both."""
SECONDS = re.compile(r"^time  .*\n(?: +.*\n)*", re.M)
"""The entry of a summary that no two runs have alike."""


def is_printed(shown: str, printed: str) -> bool:
    """Whether a block shows what was printed, wrapped anyhow and left out where it has ``...``.

    Numbers may differ as they do from one processor to another, and times are not compared.
    """
    words = SECONDS.sub("", printed).split()
    at = 0
    for piece in re.split(r"(?<!\S)\.\.\.(?!\S)", SECONDS.sub("", shown)):
        own = piece.split()
        found = (k for k in range(at, len(words) - len(own) + 1) if are_alike(own, words[k:]))
        start = next(found, None)
        if start is None:
            return False
        at = start + len(own)
    return True


def are_alike(shown: list[str], printed: list[str]) -> bool:
    """Whether the first printed words are those shown, but for small differences of numbers."""
    for a, b in zip(shown, printed):
        for (x, s), (y, t) in zip(WITH_ERROR.findall(a), WITH_ERROR.findall(b)):
            unit = 10.0 ** -len(x.partition(".")[2])
            if abs(float(x) - float(y)) > 1.01 * unit or abs(int(s) - int(t)) > 1:
                return False
        own, other = WITH_ERROR.sub("#", a), WITH_ERROR.sub("#", b)
        if NUMBER.sub("#", own) != NUMBER.sub("#", other):
            return False
        for u, v in zip(map(float, NUMBER.findall(own)), map(float, NUMBER.findall(other))):
            if abs(u - v) > max(CLOSE * max(abs(u), abs(v)), TINY):
                return False
    return True


@pytest.mark.parametrize(
    ("shown", "alike"),
    [
        ("rows 1649\n...\nerror 4.95 %, gap\n4.0e-16", True),
        ("rows 1649\nfitted, Ia1 0.6458 +- 0.01\nerror 4.96 %,", True),
        ("error 5.95 %", False),
        ("error -4.95 %", False),
        ("mass 1.24(12)", True),
        ("mass 1.24(15)", False),
        ("mass 1.27(13)", False),
        ("Ia2 0.6458", False),
        ("error 4.95 %\n...\nrows 1649", False),
        ("rows 1649 error", False),
        ("gap 4.0e-16\ntime  99 s\nnote: written", True),
    ],
)
def test_what_is_shown_is_compared_with_what_is_printed(shown: str, alike: bool) -> None:
    printed = "mass 1.25(13)\nrows  1649 fitted, Ia1 0.6458 +- 0.01\nerror  4.95 %, gap 3.1e-16\n"
    printed += "time  0.3 s (logs 0.1,\n            fit 0.2)\nnote: written\n"
    assert is_printed(shown, printed) == alike


FIRST = ("quickstart.md", "contributing.md")
"""Pages whose examples are run with the longer tests. Those of the others CI runs, and here their
commands are read alone."""


def runnable_pages() -> Iterator[Any]:
    for page in TEXTS:
        if any(block.runnable for block in blocks(page)):
            mark = pytest.mark.long if page.name in FIRST else pytest.mark.slow
            yield pytest.param(page, marks=mark, id=identifier(page))


@pytest.mark.parametrize("page", list(runnable_pages()))
def test_marked_blocks_run(
    page: Path, desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = ModuleType("guide")
    # annotations of what is defined in it are looked up there
    monkeypatch.setitem(sys.modules, guide.__name__, guide)
    printed, wrong = None, []
    for block in blocks(page):
        place = f"{identifier(page)}, line {block.line}"
        if block.file is not None:
            (desk / block.file).parent.mkdir(exist_ok=True)
            (desk / block.file).write_text(block.body, encoding="utf-8")
        shown = block.info == "text" and block.file is None and printed is not None
        if shown and not is_printed(block.body, printed):
            wrong.append(f"{place} shows\n{block.body}\nprinted was\n{printed}")
        if not block.runnable:
            continue
        printed = ""
        if block.info == "python":
            # numbered like the page, so that a traceback points into it
            text = "\n" * (block.line - 1) + block.body
            exec(compile(text, identifier(page), "exec", dont_inherit=True), vars(guide))
            printed = capsys.readouterr().out
        else:
            assert block.info in ("console", "sh"), f"{place}: cannot run {block.info!r}"
            found = commands(block.body)
            assert found, f"{place}: no dynident command"
            for arguments in found:
                code_found = run(arguments)
                out, error = capsys.readouterr()
                assert code_found == block.code, f"{place}: {shlex.join(arguments)}: {error}"
                printed += out + error
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_every_python_block_of_the_guide_runs() -> None:
    idle = [
        f"{identifier(page)}, line {block.line}"
        for page in TEXTS
        for block in blocks(page)
        if block.info == "python" and not (block.runnable or block.needs or block.file)
    ]
    assert not idle


def idle(page: Path) -> list[Block]:
    """Blocks of commands that are shown and not run here."""
    shown = [b for b in blocks(page) if b.info in ("console", "sh")]
    return [b for b in shown if page.name not in FIRST or not b.runnable]


@pytest.mark.parametrize("page", [p for p in TEXTS if idle(p)], ids=identifier)
def test_commands_parse(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in idle(page):
        for arguments in commands(block.body):
            # --help wins over the run, but unknown options are refused before it
            assert run([*arguments, "--help"]) == 0, capsys.readouterr().err


def test_flags_in_sentences_are_of_their_commands(capsys: pytest.CaptureFixture[str]) -> None:
    of_methods = {flag for flag in words("options.md") if flag.startswith("--")}
    named = re.compile(rf"`(?:dynident )?({'|'.join(COMMANDS)}) ([^`]*--[^`]+)`")
    for page in (TOP / "README.md", *PAGES):
        text = " ".join(FENCE.sub("", page.read_text(encoding="utf-8")).split())
        for command, rest in named.findall(text):
            assert run([command, "--help"]) == 0
            known = {*re.findall(r"--[a-z-]+", capsys.readouterr().out)}
            known |= of_methods if command == "identify" else set()
            assert known.issuperset(re.findall(r"--[a-z-]+", rest)), (page.name, command, rest)


def test_readme_begins_with_one_command_then_ones_own_robot_and_ends_with_the_tests() -> None:
    text = (TOP / "README.md").read_text(encoding="utf-8")
    first, own, tests = (b for b in blocks(TOP / "README.md") if b.info == "sh")
    quickstart = [b.body.strip() for b in blocks(DOCS / "quickstart.md") if b.info == "console"]
    assert f"$ {first.body.strip()}" == quickstart[0]
    for file in re.findall(r"examples/\S+", first.body):
        assert (TOP / file).is_file()
    assert len(own.body.splitlines()) == len(commands(own.body)) == 3
    assert first.runnable
    assert tests.body.strip().endswith(" pytest")
    assert text.index("## Development") < text.index(tests.body)
    (picture,) = re.findall(r"!\[([^\]]*)\]\(docs/figures/\w+\.png\)", text)
    assert "report" in picture
    assert text.index(first.body) < text.index(picture) < text.index(own.body)


@pytest.mark.long
def test_the_three_lines_of_ones_own_robot_run(desk: Path, capsys: pytest.CaptureFixture[str]):
    own = [b for b in blocks(TOP / "README.md") if b.info == "sh"][1]
    for arguments in commands(own.body):
        assert run(arguments) == 0, capsys.readouterr().err
    for name in ("result.json", "model.urdf", "report.html"):
        assert (desk / "out" / "arm" / name).is_file()


def contents(text: str) -> list[str]:
    """Pages that a page lists, in a comment."""
    lists = re.findall(r"^<!-- \{toctree\}\n(.*?)-->$", text, re.M | re.S)
    entries = (line.strip() for body in lists for line in body.splitlines())
    return [entry for entry in entries if entry and not entry.startswith(":")]


def anchors(page: Path) -> set[str]:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#{1,6} (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", t.lower()).strip().replace(" ", "-") for t in titles}


@pytest.mark.parametrize("page", TEXTS, ids=identifier)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    outside = FENCE.sub("", text)
    targets = [a or b for a, b in LINK.findall(outside)]
    targets += [f"{entry}.md" for entry in contents(text)]
    for target in targets:
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), f"{identifier(page)}: {target}"
        if anchor:
            assert anchor in anchors(path), f"{identifier(page)}: {target}"


@pytest.mark.parametrize("page", TEXTS, ids=identifier)
def test_pages_read_without_a_build(page: Path) -> None:
    """What only Sphinx knows stands in comments, but for the reference of the API."""
    text = page.read_text(encoding="utf-8")
    directives = {b.info for b in blocks(page) if b.info.startswith("{")}
    assert directives <= ({"{eval-rst}"} if page.name == "api.md" else set())
    outside = FENCE.sub("", text)
    assert not re.search(r"^% (runnable|file|needs)|^:::|\{\w+(:\w+)?\}`", outside, re.M)


def test_every_page_is_in_the_contents() -> None:
    listed = {DOCS / "index.md"}
    for page in PAGES:
        listed |= {page.parent / f"{e}.md" for e in contents(page.read_text(encoding="utf-8"))}
    assert set(PAGES) == listed


def words(page: str) -> set[str]:
    """Everything that a page sets in code, split at commas."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return {word.strip() for code in re.findall(r"`([^`\n]+)`", text) for word in code.split(",")}


@cache
def made() -> Any:
    """The script that writes the page of options."""
    spec = spec_from_file_location("make_options", DOCS / "make_options.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_keywords_have_the_types_of_the_options():
    for path, text in made().modules().items():
        assert path.read_text(encoding="utf-8") == text, "run docs/make_options.py"


CLIENT = """import dynident as di


def fit(problem: di.Problem, log: di.Recording) -> None:
    di.prepare(log, 5.0, drop_below=[0.1, 0.2], period=2.0)
    di.identify(problem, "wls", bootstrap=0, rows="all", covariance="hac", doctor=False)
    di.prepare(log, 5.0, drop_bellow=0.1)
    di.prepare(log, 5.0, median="3")
    di.identify(problem, "wls", bootstrp=0)
    di.identify(problem, "wls", covariance="hacc")
    found = di.identify(problem, "wls")
    di.excite(problem.robot, starts=1, wanted=["Izz1"], ignore=[("a", "b")], speed=1.0)
    di.payload(found, log, "fore", mass=1.0, seed=2)
    di.track(found, log, every=2.0, consistent=True)
    di.protocol(problem.robot, questions=["drives"], period=4.0)
    di.excite(problem.robot, harmonic=3)
    di.payload(found, log, frme="tool0")
    di.track(found, log, evry=2.0)
    di.protocol(problem.robot, perod=4.0)
"""
TOLD = {
    **{7: "drop_bellow", 8: '"median"', 9: "bootstrp", 10: "hacc"},
    **{16: "harmonic", 17: "frme", 18: "evry", 19: "perod"},
}
"""By the lines that are wrong."""


@pytest.mark.slow
def test_a_typed_client_is_told_of_what_is_no_option(tmp_path):
    mypy = pytest.importorskip("mypy.api")
    path = tmp_path / "client.py"
    path.write_text(CLIENT)
    # with the cache of the project's own check, where there is one
    own = ["--config-file", str(TOP / "pyproject.toml"), "--cache-dir", str(TOP / ".mypy_cache")]
    said, _, _ = mypy.run([*own, str(path)])
    errors = {int(line.split(":")[1]): line for line in said.splitlines() if ": error:" in line}
    assert set(errors) == set(TOLD), said
    assert all(word in errors[line] for line, word in TOLD.items())


def spec_keys(model: type) -> set[str]:
    """Keys of a table of a TOML file and of the tables in it, but those made of options."""
    from dynident.core.schema import Spec
    from dynident.study.loop import LoopSection, SimulationSection
    from dynident.study.study import IdentifySection, MethodSection

    own = {IdentifySection: MethodSection, SimulationSection: LoopSection}
    keys: set[str] = set()
    pending, seen = [model], set()
    while pending:
        now = pending.pop()
        if isinstance(now, type) and issubclass(now, Spec):
            now = own.get(now, now)
            if now in seen:
                continue
            seen.add(now)
            keys |= set(now.model_fields)
            pending += [field.annotation for field in now.model_fields.values()]
        else:
            pending += get_args(now)
    return keys


def test_study_page_names_every_key() -> None:
    from dynident.study.study import Study

    sections = {"robot", "log", "prepare", "identify"}
    assert spec_keys(Study) - sections <= words("study.md") | words("options.md")


def test_options_page_is_made_from_the_fields() -> None:
    from dynident.study.loop import SimulationSection
    from dynident.study.study import IdentifySection

    script = made()
    assert script.PAGE.read_text(encoding="utf-8") == script.page()
    keys = {*IdentifySection.model_fields, *SimulationSection.model_fields}
    assert keys - {"method", "parameters", "result"} <= words("options.md")


def test_robot_page_names_every_key() -> None:
    from dynident.robot.spec import RobotSpec

    assert spec_keys(RobotSpec) <= words("robots.md")


def test_pages_name_every_method_model_rule_and_prior() -> None:
    from dynident.consistency.constraints import CONSISTENCY, CONSTRAINTS
    from dynident.consistency.knowledge import CENTRES
    from dynident.consistency.prior import METRICS
    from dynident.control.controller import COMPENSATIONS, CONTROLLERS, VELOCITIES
    from dynident.control.reference import REFERENCES
    from dynident.estimators.closed_loop import STARTS
    from dynident.estimators.covariance import COVARIANCES
    from dynident.estimators.essential import RULES
    from dynident.estimators.least_squares import LOSSES
    from dynident.friction.models import FRICTIONS
    from dynident.methods import ESTIMATORS
    from dynident.readers import READERS
    from dynident.regression.row_kinds import ROWS
    from dynident.simulation.integrators import INTEGRATORS

    chosen = {*RULES, *LOSSES, *COVARIANCES, *CENTRES, *METRICS, *CONSISTENCY}
    assert chosen | {*ROWS, *INTEGRATORS, *STARTS} <= words("options.md")
    loop = {*CONTROLLERS, *COMPENSATIONS, *REFERENCES}
    assert {*ESTIMATORS, *FRICTIONS, *CONSTRAINTS, *loop, *VELOCITIES} <= words("study.md")
    # what they do
    assert loop | {*INTEGRATORS} <= words("simulation.md")
    assert {*ROWS, *STARTS} <= {word.strip('"') for word in words("closed-loop.md")}
    assert {*METRICS, *CONSISTENCY, *CONSTRAINTS} <= words("consistency.md")
    assert {*ESTIMATORS, *RULES, *LOSSES} <= words("choosing-a-method.md")
    assert {*FRICTIONS} <= words("friction.md")
    assert {*COVARIANCES} <= words("choosing-a-method.md")
    assert set(READERS) <= words("logs.md")


def test_command_line_page_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert run(["--help"]) == 0
    listing = capsys.readouterr().out.partition("Commands:")[2]
    of_methods = {flag for flag in words("options.md") if flag.startswith("--")}
    for command in re.findall(r"^  (\w+) ", listing, re.M):
        assert f"## `dynident {command}" in text
        section = text.partition(f"## `dynident {command}")[2].partition("\n## ")[0]
        assert run([command, "--help"]) == 0
        options = capsys.readouterr().out.partition("Example:")[0]
        of_options = (
            of_methods if command in ("identify", "excite", "export", "protocol") else set()
        )
        elsewhere = {"--help"} | of_options
        for option in set(re.findall(r"^  .*?(--[a-z-]+)", options, re.M)) - elsewhere:
            assert option in section, f"dynident {command} {option}"


def test_the_glossary_has_every_symbol_and_every_keyword_of_the_summary() -> None:
    robot = toy.arm(2)
    symbols = {"Iam", "fvm", "fcm"}  # of coupled drives; other symbols have an m there, too
    for name in FRICTIONS:
        model = build_idim(robot, name)
        symbols |= {parameter.symbol for parameter in model.parameters}
        symbols |= {shape.symbol for shape in FRICTIONS[name].shape}
    assert not symbols - words("glossary.md")
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    units = {term.symbol: term.unit for model in FRICTIONS.values() for term in model.parameters}
    for shown, unit in re.findall(r"^\| (`.+?) \|.*\| (.*?) \|$", text, re.M):
        for symbol, own in zip(re.findall(r"`(\w+)`", shown), unit.split(", "), strict=False):
            plain = own.translate(str.maketrans({"³": "^3", "⁵": "^5"})).replace("^⅓", "^(1/3)")
            assert units.get(symbol, plain) in (plain, "" if plain == "1" else plain), symbol
    defined = {word for line in re.findall(r"^(.+)\n: ", text, re.M) for word in line.split(", ")}
    fit = identified()
    printed = fit.summary(full=True)
    keys = {key.split()[0] for key in re.findall(r"^\w[\w ]*?(?=  )", printed, re.M)}
    assert {"method", "rows", "verdict", "certificate"} <= keys
    names = {*fit.robot.joint_names, *fit.robot.links, *fit.base.names, "overall"}
    missing = {k for k in keys - names if not any(d.startswith(k) for d in defined)}
    assert not {k for k in missing if not k.isdecimal()}


def test_the_citation_is_of_this_version() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = (TOP / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {project['version']}\n" in cited
    assert f"\nlicense: {project['license']}\n" in cited


CONDA = {"pin": "pinocchio", "matplotlib": "matplotlib-base"}
"""Packages that conda-forge calls otherwise."""


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    text = (TOP / "recipe" / "recipe.yaml").read_text()
    run_ = re.search(r"^  run:\n((?:    - .*\n)+)", text, re.M)
    assert run_ is not None
    listed = {line.strip("- ").replace(" ", "") for line in run_[1].splitlines()}
    wanted = {re.sub(r"^\w+", lambda m: CONDA.get(m[0], m[0]), d) for d in project["dependencies"]}
    assert listed == {*wanted, "__unix", f"python{project['requires-python']}"}
    assert f"version: {project['version']}\n" in text
    assert "noarch: python\n" in text
    assert f"- dynident = {project['scripts']['dynident']}\n" in text


@pytest.mark.long
def test_result_page_names_every_key(desk: Path) -> None:
    import json

    logs = "--robot arm.urdf --log run1.csv --validate run2.csv --bandwidth 5"
    study = next(b for b in blocks(DOCS / "closed-loop.md") if b.file == "loop.toml")
    (desk / "loop.toml").write_text(study.body)
    assert run(["simulate", "arm_loop.toml", "-o", "loop.csv"]) == 0
    known = words("result.md") | words("options.md")
    for arguments in (
        f"{logs} --method pc-idim-ls",
        f"{logs} --method wls --essential f-test",
        "loop.toml",
    ):
        assert run(f"identify {arguments} --no-report -o out".split()) == 0
        document = json.loads((desk / "out" / "result.json").read_text())
        # of these the content depends on the robot, the machine or the study
        for free in ("timings", "study", "state"):
            document.get("settings", {}).pop(free, None)
            document.pop(free, None)
        for joint in document["joints"]:
            joint["friction"] = joint["std"]["friction"] = None
        for named in ("logs", "log_bytes", "robot", "robot_bytes"):
            document["provenance"][named] = None
        assert keys_of(document) <= known | {"study", "timings"}


def keys_of(value: object) -> set[str]:
    if isinstance(value, dict):
        return {*value, *(key for entry in value.values() for key in keys_of(entry))}
    if isinstance(value, list):
        return {key for entry in value for key in keys_of(entry)}
    return set()


def test_api_page_has_every_public_name() -> None:
    import dynident

    text = (DOCS / "api.md").read_text(encoding="utf-8")
    public = set(dynident.__all__) - {"__version__"}
    documented = set(re.findall(r":: dynident\.(\w+)$", text, re.M))
    assert public <= documented


@pytest.mark.parametrize("page", TEXTS, ids=identifier)
def test_names_of_the_package_are_where_the_pages_say(page: Path) -> None:
    files = (block.file for block in blocks(page) if block.file and block.info == "python")
    own = {f"dynident.{file.removesuffix('.py').replace('/', '.')}" for file in files}
    for name in set(IMPORTED.findall(page.read_text(encoding="utf-8"))) - own:
        *module, last = name.split(".")
        try:
            import_module(name)
        except ModuleNotFoundError:
            assert hasattr(import_module(".".join(module)), last), name


@pytest.mark.parametrize("page", TEXTS, ids=identifier)
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    written = {block.file for block in blocks(page)}
    written |= {name for b in blocks(page) for name in re.findall(r"\A# (\S+\.py)\n", b.body)}
    places = (TOP, TOP / "src" / "dynident", DOCS / "files")
    for name in set(NAMED_FILE.findall(text)) - written:
        assert any((place / name).is_file() for place in places), name


def test_contributing_has_every_room_above_those_that_it_imports() -> None:
    storeys = next(b.body.split("\n") for b in blocks(DOCS / "contributing.md") if b.info == "text")
    level = {name: k for k, storey in enumerate(storeys) for name in re.findall(r"\w+", storey)}
    assert set(level) == set(ROOMS)
    for name, imported in ROOMS.items():
        assert all(level[name] < level[other] for other in imported), name


def test_validation_lists_the_scripts_of_its_tables() -> None:
    text = (DOCS / "validation.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\$ \S+ benchmarks/(?:reproduce\.py (\w+)|(\w+)\.py)$", text, re.M)
    shown = re.findall(r"figures/(\w+)\.md", text)
    assert sorted(name or script for name, script in listed) == sorted(shown)


def test_guide_speaks_of_the_project_only() -> None:
    for path in [*TEXTS, *(DOCS / "files").iterdir(), DOCS / "conf.py"]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.])/(work|root|home|tmp)/", text), identifier(path)


@pytest.mark.slow
def test_guide_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("furo")
    pytest.importorskip("myst_parser")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", str(DOCS), str(tmp_path)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
