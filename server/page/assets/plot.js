// Pictures: lines and heat maps, each with its table. No colours here: they are the style sheet's.
const SVG = "http://www.w3.org/2000/svg";

// An element: h("p", {class: "x", onclick: f}, children). null children are left out.
export function h(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat().filter(c => c !== null && c !== undefined && c !== false));
  return e;
}

function s(tag, attributes, ...children) {
  const e = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...children);
  return e;
}

export function number(v) {
  if (v === null || v === undefined || Number.isNaN(v)) return "–";
  if (v === 0) return "0";
  if (v < 10) return String(Number(v.toPrecision(2)));
  return Math.round(v).toLocaleString("en");
}

export function bytes(v) {
  if (v === null || v === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  while (v >= 1000 && i < units.length - 1) { v /= 1000; i++; }
  return `${number(v)} ${units[i]}`;
}

export function clock(seconds, withDay) {
  const d = new Date(seconds * 1000);
  const time = d.toLocaleTimeString([], {hour: "2-digit", minute: "2-digit", second: withDay ? undefined : "2-digit"});
  return withDay ? `${d.toLocaleDateString([], {month: "short", day: "numeric"})} ${time}` : time;
}

export function tableOf(caption, heads, rows) {
  return h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
    h("table", {}, h("caption", {class: "unseen"}, caption),
      h("thead", {}, h("tr", {}, heads.map(x => h("th", {scope: "col", class: x.n ? "n" : null}, x.text ?? x)))),
      h("tbody", {}, rows.map(r => h("tr", {}, r.map((c, i) => i === 0 ? h("th", {scope: "row"}, c)
        : h("td", {class: heads[i].n ? "n" : null}, c)))))));
}

const IDLE_SHOWN = 8; // more idle rows than these fold into one line

// A table whose cells change in place, so that focus, selection and scrolling stay. heads: text, n, and value(item), by which the column
// sorts. options: key, cells and idle, functions of an item; by: the first column to sort by; order: of items that are equal in it.
export class LiveTable {
  constructor(caption, heads, options) {
    Object.assign(this, {heads, ...options, down: true, open: false, items: [], rows: new Map(), body: h("tbody")});
    this.titles = heads.map((x, i) => h("th", {scope: "col", class: x.n ? "n" : null}, h("button", {type: "button", class: "sort", onclick: () => this.sort(i)}, x.text)));
    this.fold = h("button", {type: "button", onclick: () => { this.open = !this.open; this.show(this.items); }});
    this.foldRow = h("tr", {}, h("td", {colspan: heads.length}, this.fold));
    this.element = h("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
      h("table", {}, h("caption", {class: "unseen"}, caption), h("thead", {}, h("tr", {}, this.titles)), this.body));
  }
  sort(i) {
    this.down = this.by === i ? !this.down : Boolean(this.heads[i].n);
    this.by = i;
    this.show(this.items);
  }
  sorted(items) {
    const {value} = this.heads[this.by], sign = this.down ? -1 : 1;
    return [...items].sort((a, b) => {
      const x = value(a), y = value(b);
      return x < y ? -sign : x > y ? sign : this.order(a, b);
    });
  }
  rowOf(item) {
    const key = this.key(item), cells = this.cells(item);
    if (!this.rows.has(key)) this.rows.set(key, h("tr", {}, this.heads.map((x, i) => i ? h("td", {class: x.n ? "n" : null}) : h("th", {scope: "row"}))));
    const row = this.rows.get(key);
    cells.forEach((cell, i) => {
      const now = h("td", {}, cell);
      if (now.innerHTML !== row.children[i].innerHTML) row.children[i].replaceChildren(...now.childNodes);
    });
    return row;
  }
  show(items) {
    this.items = items;
    const sorted = this.sorted(items), idle = sorted.filter(this.idle), folds = idle.length > IDLE_SHOWN;
    const rows = (folds ? sorted.filter(x => !this.idle(x)) : sorted).map(x => this.rowOf(x));
    if (folds) {
      const text = `${idle.length} idle tables`;
      if (this.fold.textContent !== text) this.fold.textContent = text;
      this.fold.setAttribute("aria-expanded", String(this.open));
      rows.push(this.foldRow, ...(this.open ? idle.map(x => this.rowOf(x)) : []));
    }
    const focused = document.activeElement, kept = new Set(rows);
    for (const row of [...this.body.children]) if (!kept.has(row)) row.remove();
    for (const [key, row] of this.rows) if (!kept.has(row)) this.rows.delete(key);
    rows.forEach((row, i) => { if (this.body.children[i] !== row) this.body.insertBefore(row, this.body.children[i] ?? null); });
    if (focused !== document.activeElement && this.body.contains(focused)) focused.focus({preventScroll: true});
    this.titles.forEach((x, i) => { if (i === this.by) x.setAttribute("aria-sort", this.down ? "descending" : "ascending"); else x.removeAttribute("aria-sort"); });
  }
}

// The table of a picture, which is filled when it is opened.
function pictureTable(caption, heads, rowsOf) {
  const box = h("div");
  const d = h("details", {}, h("summary", {}, "The same as a table"), box);
  const fill = () => { if (d.open) box.replaceChildren(tableOf(caption, heads, rowsOf())); };
  d.addEventListener("toggle", fill);
  return d;
}

export function spark(values, label) {
  const top = Math.max(...values, 1), step = 120 / Math.max(values.length - 1, 1);
  const path = values.map((v, i) => `${(i * step).toFixed(1)},${(24 - v / top * 22).toFixed(1)}`).join(" ");
  return s("svg", {class: "spark", viewBox: "0 0 120 26", role: "img", "aria-label": label, preserveAspectRatio: "none"},
    s("polyline", {points: path, fill: "none", stroke: "var(--line1)", "stroke-width": "1.5"}));
}

function nice(v) {
  if (v <= 0) return 1;
  const base = 10 ** Math.floor(Math.log10(v));
  return [1, 2, 2.5, 5, 10].map(x => x * base).find(x => x >= v);
}

// A line for each series over the slots first..last. options: title, unit, first, last, seconds, series: [{name, dash, limit, values: Map
// of slot to number}].
export function lines(options) {
  const W = 480, H = 170, L = 46, R = 8, T = 8, B = 22;
  const {first, last, seconds, series} = options;
  let most = 0;
  for (const x of series) if (!x.limit) for (const v of x.values.values()) most = Math.max(most, v);
  const limit = Math.max(0, ...series.filter(x => x.limit).flatMap(x => [...x.values.values()]));
  if (limit && limit < most * 4) most = Math.max(most, limit);
  const top = nice(most), x = slot => L + (slot - first) / Math.max(last - first, 1) * (W - L - R);
  const y = v => T + (1 - Math.min(v / top, 1.03)) * (H - T - B);
  const marks = [0, .25, .5, .75, 1].flatMap(f => [
    s("line", {x1: L, x2: W - R, y1: y(f * top), y2: y(f * top), stroke: "var(--grid)"}),
    f * 4 % 2 ? "" : s("text", {x: L - 6, y: y(f * top) + 4, "text-anchor": "end"}, number(f * top))]);
  const times = [0, .5, 1].map(f => s("text", {x: L + f * (W - L - R), y: H - 5,
    "text-anchor": f === 0 ? "start" : f === 1 ? "end" : "middle"},
    clock((first + f * (last - first)) * seconds, seconds > 60)));
  const drawn = series.filter(q => !(q.limit && limit > top)).map((q, i) => {
    const points = [];
    let known = 0;
    for (let slot = first; slot <= last; slot++) {
      const v = q.values.get(slot);
      if (v !== undefined) known = v;
      points.push(`${x(slot).toFixed(1)},${y(v ?? (q.limit || q.holds ? known : 0)).toFixed(1)}`);
    }
    return s("polyline", {points: points.join(" "), fill: "none", "stroke-linejoin": "round",
      stroke: q.limit ? "var(--limit)" : `var(--line${i % 4 + 1})`, "stroke-width": q.limit ? 1.4 : 1.8,
      "stroke-dasharray": q.limit ? "5 4" : ["none", "none", "2 2", "7 3"][i % 4]});
  });
  const now = q => q.values.get(last) ?? 0;
  const legend = h("div", {class: "legend"}, series.map((q, i) => h("span", {},
    s("svg", {width: 22, height: 8, "aria-hidden": "true"}, s("line", {x1: 0, x2: 22, y1: 4, y2: 4,
      stroke: q.limit ? "var(--limit)" : `var(--line${i % 4 + 1})`, "stroke-width": 2,
      "stroke-dasharray": q.limit ? "5 4" : ["none", "none", "2 2", "7 3"][i % 4]})),
    `${q.name}${q.limit && limit > top ? ` ${number(limit)} (above the picture)` : ""}`)));
  const label = `${options.title}: ${series.map(q => `${q.name} ${number(now(q))}`).join(", ")} at the end`;
  return h("section", {class: "card", "data-plot": options.id}, h("h3", {}, options.title, " ", h("span", {class: "quiet small"}, options.unit)),
    s("svg", {class: "plot", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": label}, ...marks, ...times, ...drawn),
    legend,
    pictureTable(options.title, [{text: "Time"}, ...series.map(q => ({text: q.name, n: true}))], () => {
      const slots = new Set(series.flatMap(q => [...q.values.keys()]));
      return [...slots].sort((a, b) => b - a).slice(0, 300).map(slot =>
        [clock(slot * seconds, seconds > 60), ...series.map(q => number(q.values.get(slot) ?? 0))]);
    }));
}

const STEPS = [.001, .05, .1, .25, .5, .8, 1];
export const STEP_NAMES = ["none", "below 5 %", "5–10 %", "10–25 %", "25–50 %", "50–80 %", "80–100 %", "limit reached"];

// The colour of a share of a limit: 0 to 7.
export function step(share) {
  let i = 0;
  while (i < STEPS.length && share >= STEPS[i]) i++;
  return i;
}

// A heat map on a canvas. options: label, first, last, rows (number), rowHeight, cell(slot, row) => {share, refused} or undefined,
// text(slot, row), pick(slot, row), tip (element that shows the text), table: {heads, rows()}.
// The arrow keys move a cursor; Enter picks.
export class HeatMap {
  constructor(label) {
    this.canvas = h("canvas", {tabindex: "0", role: "application", "aria-label": label,
      "aria-roledescription": "heat map; arrow keys move, Enter shows a cell"});
    this.at = null;
    this.canvas.addEventListener("mousemove", e => this.point(this.under(e)));
    this.canvas.addEventListener("mouseleave", () => this.point(null));
    this.canvas.addEventListener("click", e => this.choose(this.under(e)));
    this.canvas.addEventListener("keydown", e => this.key(e));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }
  under(e) {
    const o = this.o, box = this.canvas.getBoundingClientRect();
    if (!o) return null;
    const column = Math.floor((e.clientX - box.left) / box.width * (o.last - o.first + 1));
    const row = Math.floor((e.clientY - box.top) / box.height * o.rows);
    return row < 0 || row >= o.rows ? null : {slot: o.first + column, row};
  }
  point(at) {
    this.at = at;
    if (this.o) this.o.tip.textContent = at ? this.o.text(at.slot, at.row) : this.o.hint;
    this.draw();
  }
  choose(at) { if (at && this.o) this.o.pick(at.slot, at.row); }
  key(e) {
    const o = this.o, moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    if (!o) return;
    if (e.key === "Enter" && this.at) { this.choose(this.at); e.preventDefault(); return; }
    if (!moves[e.key]) return;
    const at = this.at ?? {slot: o.last, row: 0}, [dx, dy] = moves[e.key];
    this.point({slot: Math.min(o.last, Math.max(o.first, at.slot + (this.at ? dx : 0))),
      row: Math.min(o.rows - 1, Math.max(0, at.row + (this.at ? dy : 0)))});
    e.preventDefault();
  }
  show(options) {
    this.o = options;
    this.canvas.style.height = `${options.rows * options.rowHeight}px`;
    if (!this.at) options.tip.textContent = options.hint;
    this.draw();
  }
  draw() {
    const o = this.o, c = this.canvas;
    if (!o || !c.clientWidth) return;
    const scale = window.devicePixelRatio || 1, columns = o.last - o.first + 1;
    c.width = Math.round(c.clientWidth * scale);
    c.height = Math.round(o.rows * o.rowHeight * scale);
    const style = getComputedStyle(document.documentElement), g = c.getContext("2d");
    const colours = STEP_NAMES.map((_, i) => style.getPropertyValue(`--h${i}`).trim());
    const w = c.width / columns, height = c.height / o.rows, gap = o.rowHeight > 8 && w > 3 ? scale : 0;
    g.fillStyle = colours[0];
    g.fillRect(0, 0, c.width, c.height);
    const outlined = new Map(); // row to the columns of its cells with refusals
    const least = Math.max(height - gap, 2 * scale);
    o.each((slot, row, cell) => {
      const x = (slot - o.first) * w, y = row * height;
      if (slot < o.first || slot > o.last || row >= o.rows) return;
      g.fillStyle = colours[step(cell.share)];
      g.fillRect(x, y, Math.max(w - gap, 1), least);
      if (cell.refused) outlined.set(row, [...outlined.get(row) ?? [], slot - o.first]);
    });
    g.strokeStyle = style.getPropertyValue("--refused").trim();
    g.lineWidth = 1.5 * scale;
    const out = height > 8 * scale ? 0 : 2 * scale; // around a thin row, so that its colour is seen
    for (const [row, columns] of outlined) { // cells side by side have one outline
      columns.sort((a, b) => a - b);
      for (let i = 0; i < columns.length; i++) {
        const from = columns[i];
        while (columns[i + 1] === columns[i] + 1) i++;
        g.strokeRect(from * w + .75 - out, row * height + .75 - out, (columns[i] + 1 - from) * w - gap - 1.5 + 2 * out, least - 1.5 + 2 * out);
      }
    }
    if (this.at) {
      g.strokeStyle = style.getPropertyValue("--accent").trim();
      g.lineWidth = 2 * scale;
      g.strokeRect((this.at.slot - o.first) * w, this.at.row * height, w, height);
    }
  }
}

export function legendOf(metric) {
  const labels = metric === "throttles" ? ["none", "", "", "", "", "up to 10 a second", "10–100 a second", "more"] : STEP_NAMES;
  const items = labels.map((text, i) => text && h("span", {}, (() => {
    const swatch = h("i");
    swatch.style.background = `var(--h${i})`;
    return swatch;
  })(), text)).filter(Boolean);
  const outline = h("i");
  outline.style.border = "2px solid var(--refused)";
  return h("div", {class: "legend"}, items, h("span", {}, outline, "requests were refused"));
}

export {pictureTable};
