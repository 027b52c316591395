// The page of live/page.html.j2: asks for what is new and draws it by the functions of chart.js.
const pace = { every: 250, hidden: 2000, lost: 1000, ended: 2000, quiet: 2000 }; // [ms]
const byId = (name) => document.getElementById(name);
const charts = []; // { panel, figure, lines, events, scale }
let seen = 0, points = [], equations = [], alarms = [], most = null, ended = "", paused = false;
let connected = true, fresh = performance.now();

function make(tag, kind, words) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  if (words) made.textContent = words;
  return made;
}

const round = (value, digits = 4) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(digits))));

// Ranges of y: all that is known; without the first estimates of a load, which may be anything; up to
// twice a threshold.
const scales = {
  all: (known) => [Math.min(...known), Math.max(...known)],
  trimmed: (known) => {
    const sorted = [...known].sort((a, b) => a - b), cut = Math.floor(0.05 * sorted.length);
    return [Math.min(0, sorted[cut]), Math.max(0, sorted.at(-1 - cut))];
  },
  capped: (known) => [0, Math.min(2, Math.max(...known))],
  positive: (known) => [0, Math.max(...known)],
};

// A panel with the elements of plots/page.py. Lines: [label, colour, width, point => value or null];
// thin ones are dashed.
function add(figure, title, unit, height, scale, lines) {
  const root = make("div", "panel");
  root.style.setProperty("--height", `${height}px`);
  root.dataset.x = root.dataset.y = "0 1";
  const legend = root.appendChild(make("p", "legend"));
  legend.append(make("strong", "", title));
  const area = root.appendChild(make("div", "area"));
  area.append(make("span", "beside", unit));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 10000 10000");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const path = (kind) => {
    const made = document.createElementNS(svg.namespaceURI, "path");
    made.setAttribute("class", kind);
    return svg.appendChild(made);
  };
  path("grid");
  const events = path("curve dashed");
  events.style.stroke = "var(--red)";
  const drawn = lines.map(([label, colour, width, read]) => {
    const dashed = width < 1, mark = path(dashed ? "curve dashed" : "curve");
    mark.style.stroke = `var(--${colour})`;
    mark.style.strokeWidth = width;
    if (label) {
      const entry = legend.appendChild(make("span"));
      const glyph = entry.appendChild(make("i", "", dashed ? "╍" : "━"));
      glyph.style.color = `var(--${colour})`;
      entry.append(` ${label}`);
    }
    return { label: label || title, colour: mark.style.stroke, read, mark };
  });
  area.append(svg, make("em"));
  root.append(make("span", "below", "time [s]"));
  byId(figure).firstChild.append(root);
  const panel = open(root);
  panel.lowest = true;
  panel.curves = drawn.map(({ label, colour }) => ({ label, colour, x: [], y: [] }));
  charts.push({ panel, figure, lines: drawn, events, scale });
}

function build() {
  const n = equations.length, figures = ["torque", "mass", "share"];
  charts.length = 0;
  for (const name of figures) byId(name).replaceChildren(make("div", "panels"));
  equations.forEach(({ name, unit }, j) => add("torque", name, unit, n > 8 ? 110 : 150, scales.all, [
    ["measured", "pale", 2.4, (p) => p[1 + j]], ["predicted", "blue", 1, (p) => p[1 + n + j]]]));
  const load = (p) => p[1 + 2 * n], std = (p) => p[2 + 2 * n];
  const bound = (sign) => (p) => (load(p) === null ? null : load(p) + sign * 2 * std(p));
  add("mass", "load", "kg", 150, scales.trimmed, [["mass", "blue", 1.5, load],
    ["± 2 std", "orange", 0.9, bound(1)], ["", "orange", 0.9, bound(-1)]]);
  add("share", "over the threshold", "share", 150, scales.capped, [["innovations", "blue", 1.5, (p) => p[3 + 2 * n]],
    ["alarm", "red", 0.9, () => 1]]);
  add("share", "largest change", "std", 150, scales.positive, [["change", "blue", 1.5, (p) => p[4 + 2 * n]]]);
  for (const name of figures) {
    const group = charts.filter((each) => each.figure === name).map((each) => each.panel);
    byId(name).firstChild.style.setProperty("--columns", Math.min(2, group.length));
    for (const panel of group) {
      listen(panel, group);
      const title = panel.root.querySelector("strong").textContent;
      panel.area.setAttribute("aria-label", `${title}: arrows move, plus and minus enlarge and reduce, 0 shows all`);
    }
  }
}

// What came, into what is kept; a run that started again has fewer samples than were seen.
function take(found) {
  if (found.first > seen || found.count < seen) points = [];
  const names = JSON.stringify(found.equations);
  if (found.equations.length && names !== JSON.stringify(equations)) {
    equations = found.equations;
    build();
  }
  if (found.count !== seen) fresh = performance.now();
  points.push(...found.points);
  points.splice(0, points.length - 4000);
  seen = found.count;
  ({ most, ended } = found);
  if (JSON.stringify(found.events) !== JSON.stringify(alarms)) {
    alarms = found.events;
    byId("events").replaceChildren(...alarms.map((each) => make("li", "", each.words)));
  }
  estimate(found.estimate);
}

function shown() {
  const span = Number(byId("span").value), last = points.at(-1)[0];
  let first = 0;
  while (points[first][0] < last - span) first += 1;
  return points.slice(first);
}

function draw() {
  if (!points.length) return;
  const some = shown(), low = some[0][0], high = Math.max(some.at(-1)[0], low + 1e-3);
  for (const chart of charts) {
    const { panel, lines, events } = chart;
    const zoomed = panel.seen[0] > panel.x[0] || panel.seen[1] < panel.x[1];
    if (zoomed) continue;
    const values = lines.map(({ read }) => some.map(read));
    const known = values.flat().filter((v) => v !== null);
    const own = values[0].some((v) => v !== null);
    panel.area.querySelector("em").textContent = own ? "" : chart.figure === "mass" ? "nothing is carried" : "not known";
    let [bottom, top] = own ? chart.scale(known) : [0, 1];
    if (!(top > bottom)) [bottom, top] = [bottom - 0.5, bottom + 0.5];
    const extra = 0.05 * (top - bottom);
    panel.x = [low, high];
    panel.y = [bottom - extra, top + extra];
    const across = (at) => Math.round((panel.units * (at - low)) / (high - low));
    const up = (v) => Math.round((panel.units * (panel.y[1] - v)) / (panel.y[1] - panel.y[0]));
    lines.forEach(({ mark }, k) => {
      let path = "", pen = "M";
      const curve = panel.curves[k];
      curve.x = some.map((p) => p[0]);
      curve.y = values[k].map((v) => (v === null ? NaN : v));
      some.forEach((p, i) => {
        if (values[k][i] === null) { pen = "M"; return; }
        path += `${pen}${across(p[0])} ${up(values[k][i])}`;
        pen = "L";
      });
      mark.setAttribute("d", own ? path : "");
    });
    const inside = alarms.filter((each) => each.time >= low && each.time <= high);
    events.setAttribute("d", inside.map((each) => `M${across(each.time)} 0V${panel.units}`).join(""));
    show(panel, panel.x);
  }
  now(some);
}

function now(some) {
  const last = some.at(-1), n = equations.length;
  byId("now").replaceChildren(...equations.map(({ name, unit }, j) => {
    const both = some.map((p) => [p[1 + j], p[1 + n + j]]).filter(([a, b]) => a !== null && b !== null);
    const of = (f) => both.reduce((sum, pair) => sum + f(pair) ** 2, 0);
    const size = of(([a]) => a), off = of(([a, b]) => a - b);
    const [measured, predicted] = [last[1 + j], last[1 + n + j]];
    const difference = measured === null || predicted === null ? null : measured - predicted;
    const row = make("tr"), head = make("th", "", name);
    head.scope = "row";
    const cells = [measured, predicted, difference].map((v) => (v === null ? "–" : `${round(v, 3)} ${unit}`));
    cells.push(size > 0 ? `${round(100 * Math.sqrt(off / size), 3)} %` : "–");
    row.append(head, ...cells.map((words) => make("td", "", words)));
    return row;
  }));
  const mass = last[1 + 2 * n], std = last[2 + 2 * n], share = last[3 + 2 * n], moved = last[4 + 2 * n];
  if (mass === null) say("load", "good", "No load", "besides the model's own bodies");
  else say("load", "note", `Carries ${round(mass, 3)} kg`, `± ${round(std, 2)} kg, a standard deviation`);
  const words = share === null ? "not tested yet" : `squared innovations ${round(share, 2)} of the alarm's threshold`;
  const change = moved === null ? "" : `; largest change since the start ${round(moved, 2)} standard deviations (${most})`;
  say("drift", share !== null && share > 0.8 ? "note" : "good", share !== null && share > 0.8 ? "Near an alarm" : "Within the threshold", words + change);
}

function say(name, level, title, words) {
  const item = byId(name), [strong, span] = [item.querySelector("strong"), item.querySelector("span")];
  if (item.className !== level) item.className = level;
  if (strong.textContent !== title) strong.textContent = title;
  if (span.textContent !== words) span.textContent = words;
}

function estimate(found) {
  if (!found) return;
  byId("taken").textContent = `At ${round(found.time, 5)} s, of ${found.samples} samples.`;
  byId("estimate").replaceChildren(...Object.entries(found.beta).map(([name, value]) => {
    const row = make("tr"), head = make("th", "", name);
    head.scope = "row";
    row.append(head, make("td", "", round(value)), make("td", "", round(found.std[name], 2)));
    return row;
  }));
}

function tellState() {
  const at = points.length ? `at ${points.at(-1)[0].toFixed(1)} s, ${seen} points` : "for the first sample";
  const quiet = performance.now() - fresh > pace.quiet;
  if (!connected) say("state", "bad", "No connection", `dynident track has stopped, or is not reached; last ${at}`);
  else if (ended) say("state", "note", "Ended", `${ended}; ${at}`);
  else if (paused) say("state", "note", "Paused", `the page alone; ${at}`);
  else if (!points.length || quiet) say("state", "note", "Waiting", points.length ? `no new samples; last ${at}` : at);
  else say("state", "good", "Following", at);
  const last = alarms.at(-1);
  if (last) say("alarm", "note", alarms.length === 1 ? "1 alarm" : `${alarms.length} alarms`, last.words);
  else say("alarm", "good", "No alarms", "");
}

async function follow() {
  let wait = document.hidden ? pace.hidden : pace.every;
  try {
    const answer = await fetch(`data?after=${seen}`, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.status);
    const before = seen;
    take(await answer.json());
    connected = true;
    if (seen !== before && !paused) draw();
    if (ended) wait = pace.ended;
  } catch {
    connected = false;
    wait = pace.lost;
  }
  tellState();
  setTimeout(follow, wait);
}

byId("span").addEventListener("change", draw);
byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  if (!paused) draw();
  tellState();
});
take(JSON.parse(byId("first").textContent));
draw();
tellState();
if (location.protocol !== "file:") follow(); // a page that was saved has nobody to ask
