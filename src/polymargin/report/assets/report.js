"use strict";
// The report's charts, tables and theme. No libraries; text from data only ever becomes textContent.
(() => {
const data = JSON.parse(document.getElementById("report-data").textContent);
const byId = (name) => document.getElementById(name);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];
const redraws = [];
const redraw = () => redraws.forEach((draw) => draw());

// --- theme: the system's until somebody presses the button ---
const dark = matchMedia("(prefers-color-scheme: dark)");
byId("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  redraw();
});
dark.addEventListener("change", redraw);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// --- tip beside the pointer ---
const tip = byId("tip");
function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - box.width - 6))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18}px`;
}
const hideTip = () => { tip.hidden = true; };
addEventListener("scroll", hideTip, { passive: true });

// --- tables ---
const cellValue = (row, column) => {
  const cell = row.cells[column];
  return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.toLowerCase();
};
const order = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true }));
function sortBy(table, column) {
  const heads = all("thead th", table);
  const rows = [...table.tBodies[0].rows];
  const numeric = heads[column].classList.contains("n");
  const before = heads[column].getAttribute("aria-sort");
  const down = before ? before === "ascending" : numeric;  // numbers: the largest first
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
  const keyed = rows.map((row) => [cellValue(row, column), row]);
  keyed.sort((a, b) => (down ? order(b[0], a[0]) : order(a[0], b[0])));
  table.tBodies[0].append(...keyed.map((pair) => pair[1]));
}
all("table.sortable").forEach((table) => all("thead th button", table).forEach((button, column) =>
  button.addEventListener("click", () => sortBy(table, column))));

const picked = { mistakes: null };
function filter(table, words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const pair = table.id === "mistake-table" ? picked.mistakes : null;
  for (const row of table.tBodies[0].rows) {
    const text = row.textContent.toLowerCase();
    const chosen = !pair || (+row.dataset.true === pair[0] && +row.dataset.predicted === pair[1]);
    row.hidden = !chosen || !wanted.every((word) => text.includes(word));
  }
}
all("input.search").forEach((input) =>
  input.addEventListener("input", () => filter(byId(input.dataset.table), input.value)));

// a pair of classes, chosen in the table of pairs or in the matrix
function choosePair(pair) {
  picked.mistakes = pair;
  all("#pairs tbody tr").forEach((row) => row.classList.toggle("chosen",
    !!pair && +row.dataset.true === pair[0] && +row.dataset.predicted === pair[1]));
  const table = byId("mistake-table");
  if (!table) return;
  filter(table, all('input[data-table="mistake-table"]')[0].value);
  const note = byId("mistake-filter");
  note.hidden = !pair;
  if (!pair) return;
  const shown = [...table.tBodies[0].rows].filter((row) => !row.hidden).length;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "show all";
  button.addEventListener("click", () => choosePair(null));
  note.replaceChildren(`${data.labels[pair[0]]} → ${data.labels[pair[1]]}: ${shown} shown `, button);
}

// --- line charts ---
const SVG = "http://www.w3.org/2000/svg";
function svg(parent, tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}
const brief = (value) => {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(1).replace(".0e", "e") : String(+value.toPrecision(4));
};
function linearTicks(low, high, n) {
  const raw = (high - low) / n || 1;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) ticks.push(+(i * step).toPrecision(12));
  return ticks;
}
function logTicks(low, high) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const every = Math.ceil((last - first) / 6);
  const ticks = [];
  for (let e = first; e <= last; e += every) ticks.push(10 ** e);
  return ticks;
}
function axis(values, log, ticks, from, to) {
  let low = Math.min(...values), high = Math.max(...values);
  if (low === high) { low = log ? low / 2 : low - Math.abs(low || 1) * 0.05; high = log ? high * 2 : high + Math.abs(high || 1) * 0.05; }
  const f = log ? Math.log10 : (v) => v;
  const pad = 0.04 * (f(high) - f(low));
  const a = f(low) - (log || ticks.pad ? pad : 0), b = f(high) + (log || ticks.pad ? pad : 0);
  const place = (v) => from + (to - from) * (f(v) - a) / (b - a);
  const marks = (log ? logTicks(10 ** a, 10 ** b) : linearTicks(a, b, ticks.n))
    .filter((t) => f(t) >= a - 1e-12 && f(t) <= b + 1e-12);
  return { place, marks };
}
function lineChart(name, chart) {
  const host = byId(name);
  if (!host) return;
  const draw = () => {
    const { series, target, logY, xName, percent, fromZero = true } = chart();
    const width = Math.max(260, host.clientWidth), height = width < 420 ? 230 : 270;
    const edge = { left: 62, right: 14, top: 26, bottom: 40 };
    host.replaceChildren();
    const root = svg(host, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    const usable = series.map((s) => ({ ...s, points: s.points.filter(([x, y]) => x !== null && y !== null && (!logY || y > 0)) }));
    const points = usable.flatMap((s) => s.points);
    if (!points.length) { svg(root, "text", { x: 10, y: 30 }, "nothing to draw"); return; }
    const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
    if (target) ys.push(target);
    const X = axis([...xs, ...(fromZero ? [0] : [])], false, { n: width < 420 ? 4 : 6 }, edge.left, width - edge.right);
    const Y = axis(ys, logY, { n: 5, pad: true }, height - edge.bottom, edge.top);
    const say = (v) => (percent ? `${+(100 * v).toFixed(1)} %` : brief(v));
    for (const mark of Y.marks) {
      svg(root, "line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: Y.place(mark), y2: Y.place(mark) });
      svg(root, "text", { x: edge.left - 8, y: Y.place(mark) + 4, "text-anchor": "end" }, say(mark));
    }
    for (const mark of X.marks) svg(root, "text", { x: X.place(mark), y: height - edge.bottom + 18, "text-anchor": "middle" }, brief(mark));
    svg(root, "line", { class: "axis", x1: edge.left, x2: width - edge.right, y1: height - edge.bottom, y2: height - edge.bottom });
    svg(root, "text", { x: (edge.left + width - edge.right) / 2, y: height - 4, "text-anchor": "middle" }, xName);
    if (target) {
      svg(root, "line", { class: "target", x1: edge.left, x2: width - edge.right, y1: Y.place(target), y2: Y.place(target) });
      svg(root, "text", { x: edge.left + 6, y: Y.place(target) - 6 }, `tolerance ${brief(target)}`);
    }
    let legend = width - edge.right;
    for (const one of [...usable].reverse()) {
      if (!one.points.length || one.unlisted) continue;
      const label = svg(root, "text", { class: `name ${one.kind}`, x: legend, y: 12, "text-anchor": "end" }, one.name);
      legend -= label.getComputedTextLength() + 16;
    }
    for (const one of usable) {
      const path = one.points.map(([x, y], i) => `${i ? "L" : "M"}${X.place(x).toFixed(1)} ${Y.place(y).toFixed(1)}`).join("");
      svg(root, "path", { class: one.kind, d: path });
      if (one.dots) for (const [x, y] of one.points) svg(root, "circle", { class: one.kind, cx: X.place(x), cy: Y.place(y), r: one.points.length > 60 ? 2 : 3.5 });
    }
    const cross = svg(root, "line", { class: "axis", y1: edge.top, y2: height - edge.bottom, visibility: "hidden" });
    const move = (event) => {
      const box = root.getBoundingClientRect();
      const at = (event.clientX - box.left) * width / box.width;
      const near = xs.reduce((best, x) => (Math.abs(X.place(x) - at) < Math.abs(X.place(best) - at) ? x : best));
      cross.setAttribute("x1", X.place(near));
      cross.setAttribute("x2", X.place(near));
      cross.setAttribute("visibility", "visible");
      const lines = usable.flatMap((s) => s.points.filter((p) => p[0] === near).slice(-1).map((p) => `${s.name}: ${percent ? `${(100 * p[1]).toFixed(2)} %` : +p[1].toPrecision(6)}`));
      showTip([`${xName}: ${brief(near)}`, ...lines].join("\n"), event.clientX, event.clientY);
    };
    root.addEventListener("pointermove", move);
    root.addEventListener("pointerdown", move);
    root.addEventListener("pointerleave", () => { cross.setAttribute("visibility", "hidden"); hideTip(); });
  };
  let width = 0;
  new ResizeObserver(() => { if (host.clientWidth !== width) { width = host.clientWidth; draw(); } }).observe(host);
  host.draw = draw;
}
const zip = (xs, ys) => xs.map((x, i) => [x, ys[i]]);

let across = "time";
const { certificates, estimates, tol } = data.training;
const xName = () => (across === "time" ? "seconds" : "passes");
lineChart("gap-chart", () => ({
  logY: true, xName: xName(), target: tol || null,
  series: [
    estimates && { name: "estimated", kind: "faint", points: zip(estimates[across], estimates.gap) },
    certificates && { name: "certified", kind: "blue", dots: true, points: zip(certificates[across], certificates.gap) },
  ].filter(Boolean),
}));
lineChart("objective-chart", () => ({
  xName: xName(),
  series: [
    estimates && { name: "estimated", kind: "faint", points: zip(estimates[across], estimates.primal) },
    estimates && { name: "estimated bound", kind: "faint orange", unlisted: true, points: zip(estimates[across], estimates.dual) },
    certificates && { name: "objective", kind: "blue", dots: true, points: zip(certificates[across], certificates.primal) },
    certificates && { name: "lower bound", kind: "orange", dots: true, points: zip(certificates[across], certificates.dual) },
  ].filter(Boolean),
}));
all("[data-axis]").forEach((button) => button.addEventListener("click", () => {
  across = button.dataset.axis;
  all("[data-axis]").forEach((other) => other.setAttribute("aria-pressed", other === button));
  ["gap-chart", "objective-chart"].forEach((name) => byId(name).draw());
}));
if (data.topK) lineChart("top-k-chart", () => ({
  xName: "k", percent: true, fromZero: false,
  series: [{ name: "top-k accuracy", kind: "blue", dots: true, points: data.topK.map((value, i) => [i + 1, value]) }],
}));

if (data.reliability) lineChart("reliability-chart", () => ({
  xName: "probability of the predicted class", percent: true,
  series: [
    { name: "as said", kind: "target", points: [[0, 0], [1, 1]] },
    { name: "right", kind: "blue", dots: true, points: data.reliability.map((bin) => [bin.confidence, bin.accuracy]) },
  ],
}));

// --- confusion matrix ---
function heatMap(canvas, cells) {
  const n = data.labels.length, draws = canvas.getContext("2d");
  const place = { label: cells.order.map((_, i) => i), similar: [] };
  cells.order.forEach((label, position) => { place.similar[label] = position; });
  const counts = new Map(cells.rows.map((row, i) => [row * n + cells.columns[i], cells.counts[i]]));
  let mode = "similar", view = { x: 0, y: 0, span: n }, hover = null, chosen = null;
  const at = () => place[mode];
  const labelAt = (position) => (mode === "label" ? position : cells.order[position]);
  const clamp = () => {
    view.span = Math.min(n, Math.max(Math.min(n, 4), view.span));
    view.x = Math.max(0, Math.min(n - view.span, view.x));
    view.y = Math.max(0, Math.min(n - view.span, view.y));
  };
  function draw() {
    const size = canvas.clientWidth;
    if (!size) return;
    const ratio = devicePixelRatio || 1;
    canvas.width = canvas.height = Math.round(size * ratio);
    draws.setTransform(ratio, 0, 0, ratio, 0, 0);
    draws.fillStyle = colour("--card");
    draws.fillRect(0, 0, size, size);
    const cell = size / view.span, where = at();
    const tones = { true: colour("--blue-rgb"), false: colour("--orange-rgb") };
    const drawn = cell > 5 ? cell - 1 : Math.max(cell, 1.6);
    for (let i = 0; i < cells.rows.length; i++) {
      const row = cells.rows[i], column = cells.columns[i];
      const x = (where[column] - view.x) * cell, y = (where[row] - view.y) * cell;
      if (x < -cell || y < -cell || x > size || y > size) continue;
      const share = Math.min(1, cells.counts[i] / Math.max(1, cells.support[row])), right = row === column;
      draws.fillStyle = `rgba(${tones[right]}, ${right ? 0.12 + 0.6 * share : 0.25 + 0.75 * Math.sqrt(share)})`;
      draws.fillRect(x, y, drawn, drawn);
      if (cell >= 26) {
        draws.fillStyle = colour("--ink");
        draws.font = `${Math.min(15, cell / 2.4)}px system-ui, sans-serif`;
        draws.textAlign = "center";
        draws.fillText(cells.counts[i], x + cell / 2, y + cell / 2 + 4, cell - 2);
      }
    }
    if (cell >= 13) names(size, cell);
    for (const [mark, width] of [[hover, 1.5], [chosen, 2.5]]) {
      if (!mark) continue;
      draws.strokeStyle = colour("--ink");
      draws.lineWidth = width;
      const grown = Math.max(cell, 7), shift = (grown - cell) / 2;
      draws.strokeRect((where[mark[1]] - view.x) * cell - shift, (where[mark[0]] - view.y) * cell - shift, grown, grown);
    }
  }
  function names(size, cell) {  // along the edges, once there is room
    const font = Math.max(9, Math.min(13, cell * 0.75));
    draws.font = `${font}px system-ui, sans-serif`;
    const wide = Math.min(size * 0.3, 150);
    draws.save();
    draws.globalAlpha = 0.86;
    draws.fillStyle = colour("--card");
    const shown = [];
    for (let p = Math.floor(view.y); p < Math.min(n, view.y + view.span); p++) shown.push(p);
    const widest = Math.min(wide, Math.max(...shown.map((p) => draws.measureText(data.labels[labelAt(p)]).width)) + 8);
    draws.fillRect(0, 0, widest, size);
    draws.globalAlpha = 1;
    draws.fillStyle = colour("--soft");
    draws.textAlign = "left";
    draws.beginPath();
    draws.rect(0, 0, widest, size);
    draws.clip();
    for (const p of shown) draws.fillText(data.labels[labelAt(p)], 4, (p - view.y) * cell + cell / 2 + font / 3);
    draws.restore();
  }
  function cellAt(event) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor(view.x + (event.clientX - box.left) / box.width * view.span);
    const row = Math.floor(view.y + (event.clientY - box.top) / box.height * view.span);
    return row >= 0 && column >= 0 && row < n && column < n ? [labelAt(row), labelAt(column)] : null;
  }
  function nearest(event) {  // small cells: the filled one close by
    const exact = cellAt(event);
    if (!exact || counts.has(exact[0] * n + exact[1])) return exact;
    const box = canvas.getBoundingClientRect(), cell = box.width / view.span;
    const reach = cell >= 10 ? 0 : Math.min(4, Math.ceil(5 / cell));
    for (let r = 1; r <= reach; r++) for (let dy = -r; dy <= r; dy++) for (let dx = -r; dx <= r; dx++) {
      const found = cellAt({ clientX: event.clientX + dx * cell, clientY: event.clientY + dy * cell });
      if (found && counts.has(found[0] * n + found[1])) return found;
    }
    return exact;
  }
  function zoom(factor, x = 0.5, y = 0.5) {
    const span = Math.min(n, Math.max(Math.min(n, 4), view.span * factor));
    view = { x: view.x + (view.span - span) * x, y: view.y + (view.span - span) * y, span };
    clamp();
    canvas.style.touchAction = view.span < n ? "none" : "auto";
    draw();
  }
  let drag = null, waiting = false;
  const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); } };
  function read(event) {  // say what the cell under the pointer holds
    hover = nearest(event);
    if (hover) {
      const count = counts.get(hover[0] * n + hover[1]) || 0, of = cells.support[hover[0]];
      const [true_, guess] = hover.map((code) => data.labels[code]);
      showTip(`true: ${true_}\npredicted: ${guess}\n${count} of ${of}${of ? ` (${(100 * count / of).toFixed(1)} %)` : ""}`, event.clientX, event.clientY);
    }
    later();
  }
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, view: { ...view }, moved: false }; canvas.setPointerCapture(event.pointerId); read(event); });
  canvas.addEventListener("pointermove", (event) => {
    if (drag) {
      const scale = view.span / canvas.clientWidth;
      const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
      drag.moved = drag.moved || Math.hypot(dx, dy) > 4;
      if (drag.moved && view.span < n) { view.x = drag.view.x - dx * scale; view.y = drag.view.y - dy * scale; clamp(); later(); hideTip(); return; }
    }
    read(event);
  });
  canvas.addEventListener("pointerup", (event) => {
    const click = drag && !drag.moved;
    drag = null;
    if (!click) return;
    const found = nearest(event);
    if (found && found[0] !== found[1] && counts.has(found[0] * n + found[1])) { chosen = found; choosePair(found); }
    draw();
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("pointerleave", () => { hover = null; hideTip(); later(); });
  canvas.addEventListener("dblclick", (event) => zoom(0.5, event.offsetX / canvas.clientWidth, event.offsetY / canvas.clientHeight));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX / canvas.clientWidth, event.offsetY / canvas.clientHeight);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = view.span / 6, moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (event.key === "+") zoom(0.6);
    else if (event.key === "-") zoom(1 / 0.6);
    else if (moves[event.key] && view.span < n) { view.x += moves[event.key][0]; view.y += moves[event.key][1]; clamp(); draw(); event.preventDefault(); }
  });
  all("[data-zoom]").forEach((button) => button.addEventListener("click", () =>
    zoom({ in: 0.6, out: 1 / 0.6, all: n }[button.dataset.zoom])));
  byId("similar").addEventListener("change", (event) => { mode = event.target.checked ? "similar" : "label"; draw(); });
  if (cells.left_out) byId("heat-note").append(` ${cells.left_out} of the smallest cells are left out.`);
  const look = (pair) => {  // bring a cell into view and mark it
    chosen = pair;
    const span = Math.min(n, Math.max(12, n / 8));
    view = { x: at()[pair[1]] + 0.5 - span / 2, y: at()[pair[0]] + 0.5 - span / 2, span };
    zoom(1);
  };
  all("#pairs tbody tr").forEach((row) => {
    const pick = () => { const pair = [+row.dataset.true, +row.dataset.predicted]; look(pair); choosePair(pair); };
    row.addEventListener("click", pick);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") pick(); });
  });
  redraws.push(draw);
  new ResizeObserver(draw).observe(canvas);
}
if (data.confusion && byId("heat")) heatMap(byId("heat"), data.confusion);

// --- features ---
function featureList(title, kind, weights, largest) {
  const box = document.createElement("div");
  const heading = box.appendChild(document.createElement("h3"));
  heading.textContent = title;
  const list = box.appendChild(document.createElement("ol"));
  list.className = `weights ${kind}`;
  for (const [name, weight] of weights) {
    const item = list.appendChild(document.createElement("li"));
    item.appendChild(document.createElement("span")).textContent = name;
    item.appendChild(document.createElement("i")).style.width = `${Math.max(1, 100 * Math.abs(weight) / largest)}%`;
    item.appendChild(document.createElement("small")).textContent = brief(+weight.toPrecision(3));
  }
  return box;
}
if (data.features && byId("feature-class")) {
  const choice = byId("feature-class");
  const show = () => {
    const lists = data.features[choice.value];
    const largest = Math.max(1e-300, ...[...lists.for, ...lists.against].map((pair) => Math.abs(pair[1])));
    byId("feature-lists").replaceChildren(featureList("for the class", "for", lists.for, largest),
      featureList("against it", "against", lists.against, largest));
  };
  choice.addEventListener("change", show);
  show();
}
document.documentElement.dataset.ready = "true";
})();
