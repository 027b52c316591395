// What tests/pages.py asks of a page in a frame: its width, its colours; errors come by themselves.
const told = window.told = [];
function look(frame) {
  const page = frame.contentDocument, view = frame.contentWindow;
  const width = page.documentElement.scrollWidth;
  if (width > frame.clientWidth) told.push("overflow: " + width + " px");
  const parse = text => {
    const [r, g, b, a] = (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    return [r, g, b, a ?? 1];
  };
  const over = (front, back) => [0, 1, 2].map(k => front[k] * front[3] + back[k] * (1 - front[3]));
  const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  for (const each of page.body.querySelectorAll("*")) {
    const words = [...each.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join("").trim();
    if (!/[\p{L}\p{N}]/u.test(words) || /^(SCRIPT|STYLE|NOSCRIPT|OPTION)$/.test(each.tagName)) continue;
    if (!each.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    const layers = [];
    for (let at = each; at; at = at.parentElement) layers.unshift(parse(view.getComputedStyle(at).backgroundColor));
    const back = layers.reduce((below, own) => over(own, below), [255, 255, 255]);
    const front = over(parse(view.getComputedStyle(each).color), back);
    const [low, high] = [light(front), light(back)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < CONTRAST) told.push("contrast " + ratio.toFixed(2) + ": " + each.tagName + " " + words.slice(0, 40));
  }
}
addEventListener("load", () => setTimeout(() => {
  try { look(document.querySelector("iframe")); } catch (error) { told.push("audit: " + error); }
  document.querySelector("pre").textContent = JSON.stringify(told);
}, 500));
