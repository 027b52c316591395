"""What is wrong with a page for those who do not see it, or see it on a phone or in the dark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import axe_core_python
from browser import Browser
from lxml.html import HtmlElement

THEMES = ("light", "dark")
CONTRAST = 4.5
"""Least ratio of a text's luminance and its background's (WCAG 2.2, 1.4.3)."""


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

AXE = Path(axe_core_python.__file__).with_name("axe.min.js").read_text("utf-8")
WIDTHS = (1400, 390)
"""Of a window on a desk and of a phone [px]."""
MOST = 1_500_000
"""Of a page [bytes]."""
GRAVE = ("serious", "critical")
ASK_AXE = """(async () => {
  AXE;
  const options = { iframes: false, resultTypes: ["violations"], ...RULES };
  return (await axe.run(document, options)).violations
    .filter(({ impact }) => GRAVE.includes(impact))
    .map(({ id, nodes }) => `axe ${id}, ${nodes.length} times: ${nodes[0].html.slice(0, 120)}`);
})()"""
UNFOLD = (
    'for (const each of document.querySelectorAll("details:not(:has(iframe))")) each.open = true'
)
WIDE = """[document.documentElement].filter(root => root.scrollWidth > root.clientWidth)
  .map(root => `overflow: ${root.scrollWidth} of ${root.clientWidth} px`)"""
# of each area that enlarges: where it is, once it has been scrolled to
FIND_AREA = """(which => {
  const area = document.querySelectorAll(".area[tabindex]")[which];
  area.scrollIntoView({ block: "center" });
  const box = area.getBoundingClientRect();
  return [box.left, box.top, box.width, box.height];
})"""
SEEN = """(which => {
  const area = document.querySelectorAll(".area[tabindex]")[which], chart = area.closest(".chart");
  const group = chart.matches(".shared") ? [...chart.querySelectorAll(".area[tabindex]")] : [area];
  return [group.map(each => each.querySelector("svg").getAttribute("viewBox")),
    area.querySelector("output").hidden ? "" : area.querySelector("output").textContent];
})"""


def look_at_page(
    browser: Browser, file: Path, width: int, theme: str, pictures: Path | None = None
) -> list[str]:
    """What is wrong with a page as a browser shows it, folds open, and with how it answers.

    What stands in frames is a page of its own. By night other colours are all that differs: of
    axe's rules the one on contrast is asked for, and charts, whose script knows no colours, are
    tried by day alone.

    Parameters
    ----------
    pictures : Path, optional
        Folder of what it looks like.
    """
    size = file.stat().st_size
    found = [f"size: {size} bytes"] * (size > MOST)
    browser.show(file, width, theme)
    if pictures is not None:
        browser.photograph(pictures / f"{file.stem}-{width}-{theme}.png")
    browser.run(UNFOLD)
    found += browser.run(WIDE)
    by_day = theme == THEMES[0]
    rules = "{}" if by_day else '{ runOnly: ["color-contrast"] }'
    asked = ASK_AXE.replace("RULES", rules).replace("GRAVE", str([*GRAVE]))
    found += browser.run(asked.replace("AXE", AXE, 1))
    for which in list_answering_charts(browser) if by_day else ():
        found += try_chart(browser, which)
    return [*found, *browser.complaints]


def list_answering_charts(browser: Browser) -> list[int]:
    """The first area that enlarges of the first two charts."""
    first: list[int] = browser.run(
        """(() => {
          const areas = [...document.querySelectorAll(".area[tabindex]")];
          const charts = areas.map(area => area.closest(".chart"));
          return [...new Set(charts)].map(chart => charts.indexOf(chart)).slice(0, 2);
        })()"""
    )
    return first


def try_chart(browser: Browser, which: int) -> Iterator[str]:
    """Whether a chart tells values at the pointer, enlarges a stretch that is dragged over, and
    shows all again, by mouse and by keys."""
    x, y, width, height = browser.run(f"{FIND_AREA}({which})")

    def at(share: float) -> tuple[float, float]:
        return x + share * width, y + 0.5 * height

    def see() -> tuple[list[str], str]:
        boxes, told = browser.run(f"{SEEN}({which})")
        return boxes, told

    whole, _ = see()
    browser.point(at(0.4), at(0.5))
    if not re.search(r"\d", see()[1]):
        yield f"chart {which}: no value at the pointer"
    browser.point(at(0.3), at(0.5), at(0.6), drag=True)
    enlarged, _ = see()
    if any(before == after for before, after in zip(whole, enlarged, strict=True)):
        yield f"chart {which}: a stretch that is dragged over is not enlarged"
    start, _, span, _ = (float(each) for each in enlarged[0].split())
    left, _, all_of_it, _ = (float(each) for each in whole[0].split())
    shares = (start - left) / all_of_it, span / all_of_it
    if not (abs(shares[0] - 0.3) < 0.02 and abs(shares[1] - 0.3) < 0.02):
        yield f"chart {which}: enlarged from {shares[0]:.2f}, {shares[1]:.2f} wide"
    browser.point(at(0.5), clicks=2)
    if [shorten(box) for box in see()[0]] != [shorten(box) for box in whole]:
        yield f"chart {which}: a double click does not show all again"
    browser.run(f'document.querySelectorAll(".area[tabindex]")[{which}].focus()')
    browser.press("+")
    if see()[0] == whole:
        yield f"chart {which}: + does not enlarge"
    browser.press("0")
    if [shorten(box) for box in see()[0]] != [shorten(box) for box in whole]:
        yield f"chart {which}: 0 does not show all again"


def shorten(box: str) -> list[int]:
    """A view box in whole units."""
    return [round(float(each)) for each in box.split()]
