"""The report of the TX40, its tables left out: python docs/figures/make_tx40_picture.py.

Chromium draws it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import dynident as di

TOP = Path(__file__).resolve().parents[2]
PICTURE = Path(__file__).resolve().with_name("tx40.png")
SIZE = (1100, 1030)
LEFT_OUT = "nav, h3, .hint, .caption, details:not([open]) { display: none }"


def main() -> None:
    """Identify the TX40 from its example study and draw the head of its report."""
    os.chdir(TOP)
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise SystemExit("there is no Chromium on this machine")
    fit = di.run_study(di.read_study(Path("examples/tx40/study.toml")))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        fit.report(page)
        text = page.read_text("utf-8").replace("</style>", f"{LEFT_OUT}\n</style>", 1)
        page.write_text(text, "utf-8")
        drawing = ["--headless", "--no-sandbox", f"--user-data-dir={folder}/profile"]
        drawing += ["--hide-scrollbars", f"--window-size={SIZE[0]},{SIZE[1]}"]
        shown = f"--screenshot={PICTURE}"
        subprocess.run([browser, *drawing, shown, page.as_uri()], check=True, timeout=300)


if __name__ == "__main__":
    main()
