"""What is wrong with a page for those who do not see it, or see it on a phone or in the dark."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from pathlib import Path

import lxml.html
import pytest
from lxml.html import HtmlElement

THEMES = ("light", "dark")
CONTRAST = 4.5
"""Least ratio of a text's luminance and its background's (WCAG 2.2, 1.4.3)."""
PHONE = 390
"""Width of a small screen [px]."""


def find_faults(root: HtmlElement) -> list[str]:
    """What a page lacks in names, order and references."""
    return [*find_unnamed(root), *find_disorder(root), *find_loose_ends(root)]


def find_unnamed(root: HtmlElement) -> Iterator[str]:
    """Controls, pictures, frames and tables that say nothing of what they are."""
    for each in root.xpath("//button | //input | //select | //textarea | //summary | //a"):
        labels = root.xpath(f"//label[@for='{each.get('id')}']") if each.get("id") else []
        around = [*each.iterancestors("label"), *labels]
        own = each.text_content() if each.tag in ("button", "summary", "a") else ""
        words = [each.get("aria-label", ""), own]
        for label in around:
            said = label.xpath(".//text()[not(ancestor::select)]")
            words.append("".join(said))
        if not "".join(words).strip():
            yield f"<{each.tag} id={each.get('id')!r}> has no name"
    for each in root.xpath("//svg | //img | //canvas | //figure"):
        hidden = each.get("aria-hidden") == "true"
        named = each.get("aria-label") or each.get("alt") or each.find("title") is not None
        role = each.tag in ("img", "figure") or each.get("role") == "img"
        if not hidden and not (named and role):
            yield f"<{each.tag} class={each.get('class')!r}> says not what it shows"
    for each in root.xpath("//iframe[not(@title) or @title='']"):
        yield f"a frame of {len(each.get('srcdoc', ''))} characters has no title"
    for each in root.xpath("//thead//th[not(@scope) and not(@colspan)]"):
        yield f"a head {each.text_content()!r} of a table heads neither rows nor columns"
    for each in root.xpath("//tbody/tr[not(th[@scope='row'])]"):
        yield f"a row {each.text_content()!r} of a table has no head"


def find_disorder(root: HtmlElement) -> Iterator[str]:
    """Headings that leave a level out, and what a document has once."""
    levels = [int(each.tag[1]) for each in root.xpath("//h1 | //h2 | //h3 | //h4 | //h5 | //h6")]
    if levels.count(1) != 1 or levels[0] != 1:
        yield f"headings {levels} have not one h1, first"
    for before, level in pairwise(levels):
        if level > before + 1:
            yield f"an h{level} stands below an h{before}"
    if not root.get("lang"):
        yield "the language is not told"
    if not (root.findtext(".//title") or "").strip():
        yield "there is no title"
    if not root.xpath("//meta[@name='viewport']"):
        yield "a phone would show it as on a desk"
    if len(root.xpath("//main")) != 1:
        yield "there is not one main part"


def find_loose_ends(root: HtmlElement) -> Iterator[str]:
    """References without a target, and two things of one name."""
    ids = root.xpath("//@id")
    for name in {each for each in ids if ids.count(each) > 1}:
        yield f"two have the id {name!r}"
    for target in root.xpath("//a[starts-with(@href, '#')]/@href | //label/@for | //output/@for"):
        if target.removeprefix("#") not in ids:
            yield f"{target!r} is nowhere"


# ------------------------------------------------------------------------------ colours


def read_palettes(style: str) -> list[dict[str, str]]:
    """Colours by name, by day and by night, of a page's style."""
    found: list[dict[str, str]] = []
    for block in re.findall(r":root(?:\[[^]]*\])? \{(.*?)\}", style, re.DOTALL):
        own = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", block))
        found.append({**found[0], **own} if found else own)
    return found


def measure_contrast(one: str, other: str) -> float:
    """Ratio of luminances of two colours (WCAG 2.2)."""

    def measure_luminance(colour: str) -> float:
        shares = [int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((measure_luminance(one), measure_luminance(other)))
    return (high + 0.05) / (low + 0.05)


def find_faint_text(root: HtmlElement) -> list[str]:
    """Colours that a page's style and script give to text and that its backgrounds hide."""
    page = "".join(root.xpath("//style/text() | //script/text()"))
    texts = {"ink", *re.findall(r"(?<![-\w])color: var\(--([a-z]+)\)", page)}
    told = re.findall(r"\.style\.color = ([^;]*);", page)
    texts |= {name for words in told for name in re.findall(r"var\(--([a-z]+)\)", words)}
    backs = {"page", *re.findall(r"background: var\(--([a-z]+)\)", page)}
    return [f"text in the colour {words}" for words in told if "var(--" not in words] + [
        f"{text} on {back}, {theme}: {ratio:.2f}"
        for theme, colours in zip(THEMES, read_palettes(page), strict=True)
        for text in sorted(texts)
        for back in sorted(backs & {"page", "panel", "weak"} & {*colours})
        if (ratio := measure_contrast(colours[text], colours[back])) < CONTRAST
    ]


# ------------------------------------------------------------------------------ a browser

WATCH = """<script>
addEventListener("error", event => parent.told.push("error: " + event.message));
console.error = (...words) => parent.told.push("console: " + words.join(" "));
const ask = matchMedia.bind(window);
window.matchMedia = query => {
  const found = ask(query);
  if (!query.includes("prefers-color-scheme")) return found;
  return { matches: query.includes("dark") === DARK, addEventListener() {} };
};
</script>"""
AUDIT = Path(__file__).with_name("audit.js").read_text("utf-8")


def find_chromium() -> str:
    """The browser; the test is skipped without one."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("there is no Chromium on this machine")
    return browser


def look_in_browser(place: Path, page: str, theme: str, width: int = PHONE) -> list[str]:
    """Errors of a page's script, text that is hardly seen, and whether it is too wide.

    The page stands in a frame of that width, since windows have a least one; what asks for the
    dark gets it by the style's own rules.
    """
    browser = find_chromium()
    if theme == "dark":
        page = page.replace("@media screen and (prefers-color-scheme: dark)", "@media screen")
    watch = WATCH.replace("DARK", str(theme == "dark").lower())
    page = page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">{watch}', 1)
    audit = AUDIT.replace("CONTRAST", str(CONTRAST))
    frame = f'<iframe style="border:0;width:{width}px;height:900px" srcdoc="{escape(page)}">'
    file = place / f"{theme}.html"
    file.write_text(
        f"<!DOCTYPE html><script>{audit}</script><pre>waits</pre>{frame}</iframe>", "utf-8"
    )
    done = subprocess.run(
        [browser, "--headless=new", "--no-sandbox", "--use-angle=swiftshader",
         "--enable-unsafe-swiftshader", f"--user-data-dir={place / 'profile'}",
         "--window-size=1400,1000", "--virtual-time-budget=5000", "--dump-dom", file.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    text = lxml.html.document_fromstring(done.stdout).findtext(".//pre")
    found: list[str] = json.loads(text or "")
    return found
