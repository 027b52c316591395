// Charts of plots/page.py: the values under the pointer, and stretches of x enlarged.
"use strict";
let told = false;
for (const chart of document.querySelectorAll(".chart")) {
  const panels = [...chart.querySelectorAll(".panel:not(.named, .listed)")].map(open);
  if (!panels.length) continue;
  const groups = chart.classList.contains("shared") ? [panels] : panels.map((panel) => [panel]);
  for (const group of groups) for (const panel of group) listen(panel, group);
  if (!told) {
    const hint = document.createElement("p");
    hint.className = "caption hint";
    hint.textContent = "Drag over a stretch to enlarge it, double-click to see all again; with the keyboard: arrows, +, -, 0.";
    (chart.closest("details") ?? chart).before(hint);
    told = true;
  }
}

function open(root) {
  const pair = (text) => text.split(" ").map(Number);
  const area = root.querySelector(".area");
  const panel = { root, area, svg: area.querySelector("svg"), grid: area.querySelector(".grid"),
    x: pair(root.dataset.x), y: pair(root.dataset.y), lowest: !!area.querySelector("i.x"),
    fixed: !!area.querySelector(".disc, .diamond, .ring, .bars") || root.classList.contains("fixed") };
  panel.units = pair(panel.svg.getAttribute("viewBox"))[2];
  panel.seen = panel.x;
  panel.cursor = area.appendChild(document.createElement("u"));
  panel.mark = area.appendChild(document.createElement("s"));
  panel.told = area.appendChild(document.createElement("output"));
  return panel;
}

// Points of a panel's curves in its own units, read from the paths when they are first asked for.
function curves(panel) {
  const value = ([low, high], at) => low + ((high - low) * at) / panel.units;
  panel.curves ??= [...panel.svg.querySelectorAll("path.curve")].map((path) => {
    const x = [], y = [];
    for (const run of path.getAttribute("d").split("M").slice(1)) {
      let [u, v, ...steps] = run.match(/-?\d+/g).map(Number);
      const put = () => { x.push(value(panel.x, u)); y.push(value(panel.y, panel.units - v)); };
      if (x.length) { x.push(x.at(-1)); y.push(NaN); }
      put();
      for (let k = 0; k + 1 < steps.length; k += 2) { u += steps[k]; v += steps[k + 1]; put(); }
    }
    const label = path.dataset.label ?? panel.root.querySelector(".beside").textContent;
    return { label, colour: path.style.stroke, x, y };
  });
  return panel.curves;
}

// The value of a curve at a place, between its points.
function read({ x, y }, at) {
  let low = 0, high = x.length - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; if (x[middle] > at) high = middle; else low = middle; }
  const width = x[high] - x[low], share = width > 0 ? Math.min(1, Math.max(0, (at - x[low]) / width)) : 0;
  return share === 0 ? y[low] : y[low] + share * (y[high] - y[low]);
}

function ticks(low, high, count = 5) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((m) => m * power >= rough) ?? 10), found = [];
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const short = digits > 3 && Math.max(-low, high) < 1000 * step; // enough to stand beside an axis
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    const at = k * step, power = short ? Number(at.toPrecision(3)).toExponential() : "";
    found.push([at, short ? (k ? power : "0") : digits > 6 ? at.toPrecision(4) : at.toFixed(digits)]);
  }
  return found;
}

function show(panel, [low, high]) {
  panel.seen = [low, high];
  const across = (at) => (panel.units * (at - panel.x[0])) / (panel.x[1] - panel.x[0]);
  const up = (at) => (panel.units * (panel.y[1] - at)) / (panel.y[1] - panel.y[0]);
  let [bottom, top] = panel.y;
  if (!panel.fixed && (low > panel.x[0] || high < panel.x[1])) {
    const seen = curves(panel).flatMap(({ x, y }) => y.filter((v, k) => x[k] >= low && x[k] <= high && v === v));
    const least = Math.min(...seen), most = Math.max(...seen), extra = 0.05 * (most - least);
    if (most > least) [bottom, top] = [least - extra, most + extra];
  }
  panel.svg.setAttribute("viewBox", [across(low), up(top), across(high) - across(low), up(bottom) - up(top)].join(" "));
  const powers = panel.root.classList.contains("fixed"); // of ten, which stay
  for (const old of panel.area.querySelectorAll(powers ? "i.x" : "i")) old.remove();
  const place = (kind, side, share, word) => {
    const made = panel.area.appendChild(document.createElement("i"));
    made.className = kind; made.style[side] = `${100 * share}%`; made.textContent = word;
  };
  let grid = "";
  for (const [at, word] of ticks(low, high)) {
    grid += `M${across(at)} ${up(top)}V${up(bottom)}`;
    if (panel.lowest) place("x", "left", (at - low) / (high - low), word);
  }
  for (const [at, word] of powers ? [] : ticks(bottom, top, panel.area.clientHeight > 60 ? 5 : 3)) {
    grid += `M${across(low)} ${up(at)}H${across(high)}`;
    place("y", "bottom", (at - bottom) / (top - bottom), word);
  }
  panel.grid.setAttribute("d", grid);
}

function tell(panel, group, at) {
  for (const each of group) {
    const share = (at - each.seen[0]) / (each.seen[1] - each.seen[0]);
    each.cursor.style.left = `${100 * share}%`;
    each.cursor.hidden = false;
    const lines = curves(each).flatMap((curve) => {
      const value = read(curve, at);
      return value === value ? [[curve.colour, `${curve.label} ${Number(value.toPrecision(4))}`]] : [];
    });
    if (each === panel) lines.unshift(["", `${group.at(-1).root.querySelector(".below")?.textContent ?? ""} ${Number(at.toPrecision(5))}`]);
    each.told.replaceChildren(...lines.map(([colour, words]) => {
      const line = document.createElement("span");
      line.style.borderColor = colour; line.textContent = words;
      return line;
    }));
    each.told.className = share > 0.5 ? "left" : "right";
    each.told.hidden = !lines.length;
  }
}

function listen(panel, group) {
  const hide = () => group.forEach((each) => (each.cursor.hidden = each.told.hidden = each.mark.hidden = true));
  const share = (event) => { const box = panel.area.getBoundingClientRect(); return (event.clientX - box.left) / box.width; };
  const find = (at) => panel.seen[0] + (panel.seen[1] - panel.seen[0]) * Math.min(1, Math.max(0, at));
  const enlarge = (low, high) => {
    const width = Math.min(high - low, panel.x[1] - panel.x[0]);
    if (!(width > 1e-4 * (panel.x[1] - panel.x[0]))) return;
    const start = Math.min(Math.max(low, panel.x[0]), panel.x[1] - width);
    for (const each of group) show(each, [start, start + width]);
  };
  let from = null, at = 0.5 * (panel.x[0] + panel.x[1]);
  hide();
  panel.area.addEventListener("pointermove", (event) => {
    at = find(share(event));
    tell(panel, group, at);
    if (from === null) return;
    const [low, high] = [from, share(event)].sort((a, b) => a - b);
    panel.mark.hidden = false;
    panel.mark.style.left = `${100 * low}%`; panel.mark.style.width = `${100 * (high - low)}%`;
  });
  panel.area.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse" && event.button === 0) from = share(event); });
  panel.area.addEventListener("pointerup", (event) => {
    const [low, high] = [from ?? 0, share(event)].sort((a, b) => a - b).map(find);
    if (from !== null && Math.abs(share(event) - from) > 0.01) enlarge(low, high);
    from = null; panel.mark.hidden = true;
  });
  panel.area.addEventListener("pointerleave", () => { from = null; hide(); });
  panel.area.addEventListener("dblclick", () => enlarge(...panel.x));
  panel.area.tabIndex = 0;
  panel.area.setAttribute("role", "application");
  panel.area.setAttribute("aria-label", "Chart: arrows move, plus and minus enlarge and reduce, 0 shows all");
  panel.area.addEventListener("blur", hide);
  panel.area.addEventListener("keydown", (event) => {
    const [low, high] = panel.seen, width = high - low, step = 0.02 * width;
    const move = { ArrowLeft: -step, ArrowRight: step }[event.key];
    if (move !== undefined) {
      at = Math.min(panel.x[1], Math.max(panel.x[0], at + move));
      if (at < low || at > high) enlarge(low + move, high + move);
    } else if (event.key === "+" || event.key === "=") enlarge(at - 0.35 * width, at + 0.35 * width);
    else if (event.key === "-") enlarge(at - 0.7 * width, at + 0.7 * width);
    else if (event.key === "0" || event.key === "Escape") enlarge(...panel.x);
    else return;
    event.preventDefault();
    tell(panel, group, at);
  });
}
