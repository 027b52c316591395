"""Pages that commands write, parts of them left out: python docs/figures/make_report_pictures.py.

Chromium draws them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import dynident as di
from dynident.cli import run

TOP = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
HEAD = "nav, h3, .hint, .caption, details:not([open]) { display: none }"
GROUND = "nav, .verdict, details, .hint, main > :not(#ground) { display: none }"


def draw(browser: str, page: Path, left_out: str, name: str, size: tuple[int, int]) -> None:
    """A picture of the top of a page."""
    text = page.read_text("utf-8").replace("</style>", f"{left_out}\n</style>", 1)
    page.write_text(text, "utf-8")
    with tempfile.TemporaryDirectory() as profile:
        drawing = ["--headless", "--no-sandbox", f"--user-data-dir={profile}", "--hide-scrollbars"]
        drawing += [f"--window-size={size[0]},{size[1]}", f"--screenshot={HERE / name}"]
        subprocess.run([browser, *drawing, page.as_uri()], check=True, timeout=300)


def main() -> None:
    """The TX40's report, the ground under the quadruped, and a fleet."""
    os.chdir(TOP)
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("there is no Chromium on this machine")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        page = folder / "report.html"
        for robot, left_out, size in (
            ("tx40", HEAD, (1100, 890)),
            ("quadruped", GROUND, (1100, 970)),
        ):
            fit = di.run_study(di.read_study(TOP / "examples" / robot / "study.toml"))
            fit.report(page)
            draw(browser, page, left_out, f"{robot}.png", size)
        make = [sys.executable, "examples/fleet/make.py", "-o", str(folder / "fleet")]
        subprocess.run([*make, "--seconds", "10"], check=True)
        robots = sorted(str(path) for path in (folder / "fleet").glob("robot-*"))
        study, out = str(folder / "fleet" / "study.toml"), folder / "out"
        run(["fleet", *robots, "--study", study, "-o", str(out)])
        draw(browser, out / "fleet.html", ".hint { display: none }", "fleet.png", (1100, 1650))


if __name__ == "__main__":
    main()
