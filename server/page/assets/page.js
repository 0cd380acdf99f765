// The live page. Each view has a function that draws it and one that renews it; the address names the view, the table, the window and
// the metric, so that it can be shared. JSON and its meaning: docs/page.md.
import {HeatMap, LiveTable, STEP_NAMES, bytes, clock, h, legendOf, lines, number, pictureTable, spark, tableOf} from "/plot.js";

const main = document.getElementById("main"), live = document.getElementById("live"), says = document.getElementById("says");
const WINDOWS = [["2 minutes", "by second"], ["1 hour", "by minute"], ["7 hours", "by 2 minutes"], ["16 hours", "by 6 minutes"],
  ["6 days", "by half-hour"], ["28 days", "by 4 hours"]];
const METRICS = {read_units: "Read units", write_units: "Write units", throttles: "Throttles", entities: "Entities"};
const FIGURES = ["read_units", "write_units", "throttles", "entities"]; // the order of a cell
const metrics = () => Object.fromEntries(Object.entries(METRICS).filter(([name]) => name !== "entities" || session.guidance)); // entities have a limit under the guidance alone
let session = {login: false, role: null}, view = null, timer = null, turn = 0;

/* ---- the server ---- */

class Refused extends Error {
  constructor(status, text) { super(text); this.status = status; }
}

async function ask(path, options = {}) {
  const answer = await fetch(path, {...options, headers: options.method === "POST" ? {"X-Tally": "page"} : {}});
  const body = await answer.json().catch(() => ({error: `status ${answer.status}`}));
  if (answer.ok) return body;
  if (answer.status === 401 && !path.startsWith("/api/login")) session.role = null;
  throw new Refused(answer.status, body.error);
}

const get = (path, args) => ask(`${path}?${new URLSearchParams(Object.entries(args).filter(([, v]) => v !== undefined && v !== null))}`);
const post = (path, body, args = {}) => ask(`${path}?${new URLSearchParams(args)}`, {method: "POST", body});

/* ---- addresses ---- */

function place() {
  const a = new URLSearchParams(location.search);
  const window_ = Number(a.get("window") ?? 0);
  return {view: a.get("table") ? "table" : a.get("view") === "table" ? "overview" : a.get("view") ?? "overview", table: a.get("table"), statement: a.get("statement"),
    window: window_ in WINDOWS ? window_ : 0, metric: a.get("metric") in metrics() ? a.get("metric") : "read_units"};
}

function address(change) {
  const a = new URLSearchParams();
  for (const [name, value] of Object.entries(change)) if (value !== undefined && value !== null) a.set(name, value);
  return a.size ? `/?${a}` : "/";
}

function go(to, replaces) {
  history[replaces ? "replaceState" : "pushState"](null, "", to);
  if (!replaces) { open(); main.focus({preventScroll: true}); scrollTo(0, 0); }
}

const tableLink = (keyspace, table, more = {}) => {
  const to = address({table: `${keyspace}.${table}`, ...more});
  return h("a", {href: to, "data-to": to}, `${keyspace}.${table}`);
};

document.addEventListener("click", e => {
  const a = e.target.closest("a[data-go], a[data-to]");
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  go(a.dataset.to ?? a.getAttribute("href"));
});
addEventListener("popstate", () => open());

/* ---- theme ---- */

const stored = name => { try { return localStorage.getItem(name); } catch { return null; } };
function theme(wanted) {
  document.documentElement.dataset.theme = wanted ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  if (view?.redraw) view.redraw();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme(stored("theme")));
document.getElementById("theme").addEventListener("click", () => {
  const wanted = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("theme", wanted); } catch { /* the choice lasts for this page only */ }
  theme(wanted);
});

/* ---- pieces ---- */

const STATUS_BADGE = {ACTIVE: "good", CREATING: "warn", UPDATING: "warn", DELETING: "warn", RESTORING: "warn"};
const badge = (text, kind) => h("span", {class: `badge ${kind ?? ""}`}, text);

function bar(value, limit, unit) {
  if (!limit) return h("span", {}, number(value));
  const share = value / limit, fill = h("i");
  fill.style.width = `${Math.min(share, 1) * 100}%`;
  return h("span", {title: `${(share * 100).toFixed(1)} % of ${number(limit)} ${unit} a second`},
    h("span", {class: `bar ${share >= 1 ? "over" : ""}`, "aria-hidden": "true"}, fill), `${number(value)} / ${number(limit)}`);
}

function states(status) {
  const path = {CREATING: ["CREATING", "ACTIVE"], RESTORING: ["RESTORING", "ACTIVE"], UPDATING: ["ACTIVE", "UPDATING", "ACTIVE"],
    DELETING: ["ACTIVE", "DELETING", "gone"]}[status] ?? [status];
  const at = path.indexOf(status);
  return h("ol", {class: "states", "aria-label": `states of this change, now ${status}`},
    path.map((x, i) => h("li", {"aria-current": i === at ? "step" : null}, x)));
}

function choice(name, legend, options, value, change) {
  return h("fieldset", {class: "choice"}, h("legend", {class: "unseen"}, legend), Object.entries(options).map(([key, text]) =>
    h("label", {}, h("input", {type: "radio", name, value: key, checked: key === String(value), onchange: () => change(key)}), text)));
}

const REFUSES_NOW = 3; // seconds since a limit's last refusal; later it is past, and grey

const refuses = (x, now) => now - x.last_at / 1000 <= REFUSES_NOW;
const refusesNow = (t, now) => t.throttled.some(x => (x.refused || x.shadowed) && refuses(x, now));

// Refusals a second of a table, and the limits that refuse. A table without history has no rate.
function refusals(t, now) {
  const limits = t.throttled.filter(x => x.refused || x.shadowed).map(x =>
    h("span", {class: `badge ${refuses(x, now) ? "bad" : ""}`,
      title: `${x.what}; limit ${number(x.rate)} a second; last at ${new Date(x.last_at).toLocaleString()}, in all ${number(x.refused || x.shadowed)}${x.refused ? "" : " in shadow"}`}, x.limit));
  return limits.length ? h("span", {}, t.watched ? `${number(t.throttles ?? 0)}/s` : refusesNow(t, now) ? "now" : "past", limits.flatMap(x => [" ", x])) : h("span", {class: "quiet"}, "none");
}

const errorBox = e => h("p", {class: "error", role: "alert"}, e.message ?? String(e));
const seconds_ago = ms => Math.max(0, Math.round((Date.now() - ms) / 1000));

// The sizes of tables are counted when they are asked for, and other answers show them from then on.
let storageAsked = 0;
function countStorage() {
  if (Date.now() - storageAsked < 60000) return;
  storageAsked = Date.now();
  get("/api/rows", {of: "storage"}).catch(() => {});
}

const VALUE_SHOWN = 120; // characters of a value; the rest is shown on request

function valueOf(v) {
  if (v === null) return h("i", {class: "quiet"}, "null");
  return v.length <= VALUE_SHOWN ? v : h("details", {class: "value"}, h("summary", {}, `${v.slice(0, VALUE_SHOWN)}… (${number(v.length)} characters)`), v);
}

/* ---- overview ---- */

function overview() {
  const tiles = h("dl", {class: "tiles"}), ddl = h("div"), none = h("p", {class: "quiet"}), list = h("div", {}, none), more = h("div", {class: "row"});
  const search = h("input", {type: "search", placeholder: "Find a table", "aria-label": "Find a table", oninput: () => find()});
  const extra = [];
  let now = null, found = null, next = null; // found: the first page of the tables with the text in their names; null: of all
  main.replaceChildren(h("div", {class: "head"}, h("h1", {}, "Overview"), h("span", {class: "grow"}, search)), tiles, ddl,
    h("section", {class: "card"}, h("h2", {}, "Tables"), list, more));
  const share = t => Math.max(t.read_capacity ? (t.read_units ?? 0) / t.read_capacity : 0, t.write_capacity ? (t.write_units ?? 0) / t.write_capacity : 0);
  const name = t => `${t.keyspace}.${t.table}`;
  const rows = new LiveTable("Tables", [{text: "Table", value: name}, {text: "Refused/s, and by which limit", value: t => t.throttles || (refusesNow(t, now.now) ? Number.MIN_VALUE : 0)},
    {text: "Status", value: t => t.status}, {text: "Units/s, last minute", value: t => t.spark?.reduce((a, x) => a + x) ?? -1},
    {text: "Read units/s of limit", n: true, value: t => t.read_units ?? -1}, {text: "Write units/s of limit", n: true, value: t => t.write_units ?? -1},
    {text: "p50 ms", n: true, value: t => t.p50_ms ?? -1}, {text: "p99 ms", n: true, value: t => t.p99_ms ?? -1}, {text: "Storage", n: true, value: t => t.bytes ?? -1}], {
    by: 1, key: name, order: (a, b) => share(b) - share(a) || (name(a) < name(b) ? -1 : 1),
    idle: t => !found && !t.throttles && !refusesNow(t, now.now) && !t.under_way && !t.spark?.some(x => x > 0),
    cells: t => [tableLink(t.keyspace, t.table), refusals(t, now.now), badge(t.status, STATUS_BADGE[t.status]),
      t.watched ? spark(t.spark, `units a second in the last minute, now ${number(t.spark.at(-1))}`) : h("span", {class: "quiet small"}, t.counted ? "has charges, but no history yet" : "no request yet"),
      bar(t.read_units ?? 0, t.read_capacity, "read units"), bar(t.write_units ?? 0, t.write_capacity, "write units"),
      t.watched ? number(t.p50_ms) : "–", t.watched ? number(t.p99_ms) : "–", bytes(t.bytes)]});
  list.append(rows.element);
  function draw() {
    const tables = [...new Map([...extra, ...(found ?? now).tables].map(t => [name(t), t])).values()]; // a table may have moved to the first page
    const sum = name => now.tables.reduce((a, t) => a + (t[name] ?? 0), 0);
    const busy = now.tables.filter(t => t.throttles > 0 || refusesNow(t, now.now)).length;
    tiles.replaceChildren(...[["Tables", `${now.tables.length}${now.next ? "+" : ""}`, ""], ["Read units", number(sum("read_units")), "a second"],
      ["Write units", number(sum("write_units")), "a second"], ["Throttles", number(sum("throttles")), "a second", sum("throttles") > 0],
      ["Tables that throttle", String(busy), "now", busy > 0]].map(([dt, dd, unit, alarm]) =>
      h("div", {class: `tile ${alarm ? "alarm" : ""}`}, h("dt", {}, dt), h("dd", {}, dd, " ", h("small", {}, unit)))));
    const changes = [...now.keyspaces.map(k => [k.keyspace, "keyspace", k.status]),
      ...now.tables.filter(t => t.under_way).map(t => [tableLink(t.keyspace, t.table), "table", t.status])];
    ddl.replaceChildren(...(changes.length ? [h("section", {class: "card", "data-ddl": ""}, h("h2", {}, "Changes of the schema in progress"),
      tableOf("Changes of the schema in progress", [{text: "Object"}, {text: "Kind"}, {text: "State"}], changes.map(([o, k, st]) => [o, k, states(st)])))] : []));
    rows.show(tables);
    rows.element.hidden = !tables.length;
    none.hidden = tables.length > 0;
    none.textContent = tables.length ? "" : found ? "No table has that name." : "There are no tables yet. Create one with cqlsh, and it appears here.";
    more.replaceChildren(...(next ? [h("button", {type: "button", onclick: loadMore}, "More tables")] : []));
  }
  const wanted = () => search.value.trim() || undefined;
  async function find() {
    extra.length = 0;
    const text = wanted(), a = text && await get("/api/tables", {find: text});
    if (text !== wanted()) return;
    found = a ?? null;
    next = (found ?? now).next;
    draw();
  }
  async function loadMore() {
    const page = await get("/api/tables", {after: next, find: wanted()});
    extra.push(...page.tables);
    next = page.next;
    draw();
  }
  return {title: "Overview", every: 1, async renew() {
    now = await get("/api/tables", {});
    countStorage();
    if (wanted() && !extra.length) return find();
    if (!extra.length) next = now.next;
    draw();
  }};
}

/* ---- a table ---- */

// The columns of a map, by slot; renewed from the last slot on.
class MapData {
  constructor(by) { this.by = by; this.columns = new Map(); this.tokens = new Map(); this.last = 0; }
  async renew(q) {
    const a = await get("/api/map", {...q, by: this.by, since: this.last ? Math.max(this.last - 1, 0) : undefined});
    for (const c of a.columns) this.columns.set(c.slot, this.by === "range" ? this.ofRanges(c) : this.ofPartitions(c, a.rows));
    this.last = a.last;
    this.first = a.last + 1 - a.slots;
    for (const slot of this.columns.keys()) if (slot < this.first) this.columns.delete(slot);
    Object.assign(this, {limits: a.limits, seconds: a.slot_seconds, finding: a.finding, watched: a.watched, now: a.now});
  }
  cell(x) { return {mean: x.slice(1, 5), most: x.slice(5, 9)}; }
  ofRanges(c) { return {cells: new Map(c.cells.map(x => [x[0], this.cell(x)]))}; }
  ofPartitions(c, rows) {
    for (const r of rows) this.tokens.set(r.token, r.key);
    return {cells: new Map(c.cells.map(x => [rows[x[0]].token, this.cell(x)])), others: c.others};
  }
  share(values, metric) {
    const i = FIGURES.indexOf(metric);
    if (metric !== "throttles") return this.limits[metric] ? values[i] / this.limits[metric] : 0;
    return values[2] === 0 ? 0 : values[2] < 10 ? .6 : values[2] < 100 ? .9 : 2;
  }
  // The heaviest partitions of the window by the metric, heaviest first.
  heaviest(metric, n) {
    const most = new Map();
    for (const c of this.columns.values())
      for (const [token, cell] of c.cells) most.set(token, Math.max(most.get(token) ?? 0, this.share(cell.most, metric)));
    return [...most].filter(([, v]) => v > 0).sort((a, b) => b[1] - a[1]).slice(0, n).map(([token]) => token);
  }
}

function tablePage(at) {
  const dot = at.table.indexOf("."), keyspace = at.table.slice(0, dot), table = at.table.slice(dot + 1);
  let {window: windowAt, metric} = at, series = [], points = new Map(), lastSlot = 0, info = null, shape = null;
  let maps = {range: new MapData("range"), partition: new MapData("partition")};
  const finding = h("section", {class: "card finding", "aria-label": "Finding"}), head = h("div", {class: "head"}), charts = h("div", {class: "charts"});
  const detail = h("div", {role: "region", "aria-label": "Chosen partition", "aria-live": "polite"}), statements = h("div"), throttles = h("div");
  const labels = h("ol", {"aria-label": "Heaviest partitions"}), partitionTip = h("p", {class: "tip"}), rangeTip = h("p", {class: "tip"});
  const partitionMap = new HeatMap("Heaviest partitions over time"), rangeMap = new HeatMap("Token ranges over time");
  const axes = [h("div", {class: "axis"}), h("div", {class: "axis"})], legends = [h("div"), h("div")], rating = [h("p", {class: "quiet small"}), h("p", {class: "quiet small"})];
  const query = () => ({keyspace, table, window: windowAt});
  const metricChoice = () => choice("metric", "Metric of the maps", metrics(), metric, m => { metric = m; permalink(); drawMaps(); });
  const windowChoice = h("select", {"aria-label": "Window", onchange: e => {
    windowAt = Number(e.target.value); points = new Map(); lastSlot = 0;
    maps = {range: new MapData("range"), partition: new MapData("partition")};
    permalink(); open.renew();
  }}, WINDOWS.map(([a, b], i) => h("option", {value: i, selected: i === windowAt}, `${a}, ${b}`)));
  const permalink = () => go(address({table: at.table, window: windowAt || null, metric: metric === "read_units" ? null : metric}), true);
  const rowsOf = () => maps.partition.heaviest(metric, 16);
  let rows = [];

  const partitionsTable = pictureTable("Heaviest partitions", [{text: "Partition"}, {text: "Token"}, ...Object.values(METRICS).map(x => ({text: `${x}/s, most`, n: true}))],
    () => rows.map(token => {
      const most = [0, 0, 0, 0];
      for (const c of maps.partition.columns.values()) c.cells.get(token)?.most.forEach((v, i) => { most[i] = Math.max(most[i], v); });
      return [maps.partition.tokens.get(token), token, ...most.map(number)];
    }));
  const rangesTable = pictureTable("Token ranges", [{text: "Range"}, ...Object.values(METRICS).map(x => ({text: `${x}/s, most`, n: true}))], () => {
    const most = new Map();
    for (const c of maps.range.columns.values()) for (const [r, cell] of c.cells) {
      const m = most.get(r) ?? [0, 0, 0, 0];
      most.set(r, m.map((v, i) => Math.max(v, cell.most[i])));
    }
    return [...most].sort((a, b) => a[0] - b[0]).map(([r, m]) => [rangeName(r), ...m.map(number)]);
  });

  main.replaceChildren(head, finding, h("section", {class: "card"}, h("h2", {}, "Throttles and their reasons"), throttles),
    h("div", {class: "row"}, windowChoice, metricChoice()),
    h("section", {class: "card"}, h("h2", {}, "Heaviest partitions"), rating[0],
      h("div", {class: "map"}, labels, partitionMap.canvas, axes[0]), legends[0], partitionTip, partitionsTable),
    detail,
    h("section", {class: "card"}, h("h2", {}, "All partitions, by 256 ranges of their tokens"), rating[1],
      h("div", {class: "map range"}, h("div", {class: "side", "aria-hidden": "true"}, h("span", {}, "−2⁶³"), h("span", {}, "token"), h("span", {}, "2⁶³")),
        rangeMap.canvas, axes[1]), legends[1], rangeTip, rangesTable),
    charts,
    h("section", {class: "card"}, h("h2", {}, "Most expensive statements"), statements));

  const span = d => clock(d * maps.range.seconds, maps.range.seconds > 60);
  const rangeName = r => `${(BigInt(r) - 128n) * (1n << 56n)} to ${(BigInt(r) - 127n) * (1n << 56n) - 1n}`;
  const words = cell => FIGURES.map((f, i) => `${METRICS[f].toLowerCase()} ${number(cell.mean[i])} (most ${number(cell.most[i])})`).join(", ");

  async function pick(args, title) {
    const a = await get("/api/partitions", {keyspace, table, ...args});
    const list = a.partitions.slice(0, 8);
    detail.replaceChildren(h("section", {class: "card detail"}, h("div", {class: "head"}, h("h2", {}, title),
      h("button", {type: "button", class: "grow", onclick: () => detail.replaceChildren()}, "Close")),
    list.length ? list.map(partition) : h("p", {class: "quiet"}, "The ledger keeps no partition here any more: it keeps the heaviest.")));
    detail.scrollIntoView({block: "nearest"});
  }
  function partition(p) {
    const reasons = Object.entries(p.throttled_by).filter(([, n]) => n).map(([r, n]) => badge(`${r}: ${number(n)}`, "bad"));
    return h("dl", {}, ...[
      ["Partition key", h("code", {}, p.key)], ["Token", p.token],
      ["Last minute", `${number(p.read_units_last_minute)} read units, ${number(p.write_units_last_minute)} write units, ${number(p.entities_last_minute)} entities, ${number(p.throttles_last_minute)} throttles`],
      ["In all", `${number(p.requests)} requests, ${number(p.read_units)} read units, ${number(p.write_units)} write units; ${number(p.share * 100)} % of the server's load`],
      ["Throttled by", reasons.length ? reasons : "nothing"],
      ["Statements", p.statements.length ? h("ul", {}, p.statements.map(x => h("li", {}, h("code", {}, x.statement), ` ${number(x.requests)} requests`))) : "not known"],
      ["Roles", p.roles.length ? p.roles.map(x => `${x.role} (${number(x.requests)})`).join(", ") : "the server has no logins"],
    ].flatMap(([dt, dd]) => [h("dt", {}, dt), h("dd", {}, dd)]));
  }

  function drawFinding(f) {
    const kind = f.kind === "none" ? "" : f.limit || f.kind === "hot_key" ? "bad" : "warn";
    finding.className = `card finding ${kind}`;
    finding.dataset.finding = f.kind;
    finding.dataset.limit = f.limit ?? "";
    const past = Boolean(f.limit) && maps.partition.now - f.until > maps.partition.seconds + 5; // seconds
    finding.classList.toggle("past", past);
    const when = time => clock(time, maps.partition.seconds > 60);
    const refusals = f.limit ? h("p", {}, h("strong", {}, `${f.shadow ? "Would be refused" : "Refused"} ${number(f.refused_rate)}/s by `, h("code", {}, f.limit), `, ${number(f.limit_rate)} ${f.unit}`),
      `, since ${when(f.since)}${past ? ` until ${when(f.until)}` : ""}: ${number(f.refused)} requests, ${(f.refused_share * 100).toFixed(f.refused_share < .1 ? 1 : 0)} % of those in this window.`) : null;
    const more = f.key ? h("p", {}, h("code", {}, f.key), ` had up to ${number(f.share * 100)} % of its limit`,
      f.key_refused ? `, and ${number(f.key_refused)} refusals a second.` : ".") : null;
    finding.replaceChildren(h("div", {}, h("p", {}, h("strong", {}, f.words)), refusals, more, f.advice ? h("p", {}, f.advice) : null,
      h("p", {class: "small"}, h("a", {href: f.source, rel: "noreferrer", target: "_blank"}, "The published advice"))));
  }

  function drawMaps() {
    const p = maps.partition, r = maps.range, i = FIGURES.indexOf(metric);
    if (!p.limits || !r.limits) return;
    rows = rowsOf();
    const limit = metric === "throttles" ? "throttles have no limit of their own: colours show how many" : `share of what one partition may take, ${number(p.limits[metric])} ${METRICS[metric].toLowerCase()} a second`;
    const rated = `Rated over ${WINDOWS[windowAt][0]} ${WINDOWS[windowAt][1]}: a cell's colour is its busiest second`;
    rating[0].textContent = `${rated}, as ${limit}.`;
    rating[1].textContent = `${rated}, as ${limit}. A range holds many partitions, so it may pass the limit of one without harm.`;
    const same = labels.children.length === rows.length + 1 && rows.every((t, k) => labels.children[k].dataset.token === t);
    if (!same) labels.replaceChildren(...rows.map(token => h("li", {"data-token": token}, h("button", {type: "button", title: p.tokens.get(token), onclick: () => pick({token}, "Partition")},
      p.tokens.get(token)))), h("li", {}, h("span", {class: "others"}, "others")));
    partitionMap.show({first: p.first, last: p.last, rows: rows.length + 1, rowHeight: 22, tip: partitionTip,
      hint: rows.length ? "Point at a cell, or move with the arrow keys; a click or Enter shows its statements." : "No partition has had requests in this window.",
      each(f) {
        for (const [slot, c] of p.columns) {
          rows.forEach((token, k) => { const x = c.cells.get(token); if (x) f(slot, k, {share: p.share(x.most, metric), refused: x.most[2] > 0}); });
          if (c.others) {
            const rest = [...c.others];
            for (const [token, x] of c.cells) if (!rows.includes(token)) x.mean.forEach((v, k) => { rest[k] += v; });
            f(slot, rows.length, {share: p.share(rest, metric), refused: rest[2] > 0});
          }
        }
      },
      text(slot, row) {
        const c = p.columns.get(slot), x = row < rows.length ? c?.cells.get(rows[row]) : null;
        if (row === rows.length) return `${span(slot)}, others: ${c?.others ? FIGURES.map((f, k) => `${METRICS[f].toLowerCase()} ${number(c.others[k])}`).join(", ") : "nothing"} a second`;
        return `${span(slot)}, ${p.tokens.get(rows[row])}: ${x ? `${words(x)} a second; ${number(p.share(x.most, metric) * 100)} % of the limit` : "nothing"}`;
      },
      pick(slot, row) { if (row < rows.length) pick({token: rows[row]}, "Partition"); }});
    rangeMap.show({first: r.first, last: r.last, rows: 256, rowHeight: 1.5, tip: rangeTip,
      hint: "Point at a cell, or move with the arrow keys; a click or Enter shows its heaviest partitions.",
      each(f) { for (const [slot, c] of r.columns) for (const [k, x] of c.cells) f(slot, k, {share: r.share(x.most, metric), refused: x.most[2] > 0}); },
      text(slot, row) {
        const x = r.columns.get(slot)?.cells.get(row);
        return `${span(slot)}, tokens ${rangeName(row)}: ${x ? `${words(x)} a second` : "nothing"}`;
      },
      pick(slot, row) { pick({range: row}, `Partitions of the tokens ${rangeName(row)}`); }});
    for (const axis of axes) axis.replaceChildren(...[r.first, Math.round((r.first + r.last) / 2), r.last].map(x => h("span", {}, span(x))));
    for (const l of legends) l.replaceChildren(legendOf(metric));
    if (p.watched) drawFinding(p.finding);
    else {
      finding.className = "card finding";
      finding.dataset.finding = "not_watched";
      finding.replaceChildren(h("p", {}, h("strong", {}, "No history: "), "this table has had no request yet, or 16 other tables have more traffic. History begins with its next requests."));
    }
  }

  const values = (name, most) => {
    const i = series.findIndex(x => x.name === name), out = new Map();
    for (const [slot, p] of points) out.set(slot, p[1 + i + (most ? series.length : 0)]);
    return out;
  };
  const difference = (a, b) => new Map([...a].map(([slot, v]) => [slot, Math.max(v - (b.get(slot) ?? 0), 0)]));
  function drawCharts() {
    const opened = new Set([...charts.querySelectorAll("details[open]")].map(d => d.parentElement.dataset.plot));
    const o = {first: shape.last + 1 - shape.slots, last: shape.last, seconds: shape.slot_seconds}, v = values;
    const one = (id, title, unit, list) => lines({id, title, unit, ...o, series: list});
    charts.replaceChildren(
      one("read", "Reads", "read units a second", [{name: "consumed", values: v("read_units")}, {name: "limit", limit: true, values: v("read_capacity")}]),
      one("write", "Writes", "write units a second", [{name: "rows", values: difference(v("write_units"), v("static_write_units"))},
        {name: "static data", values: v("static_write_units")}, {name: "limit", limit: true, values: v("write_capacity")}]),
      one("throttle", "Throttles", "requests a second", [{name: "reads", values: v("read_throttles")}, {name: "writes", values: v("write_throttles")},
        {name: "by a partition", values: v("partition_throttles")}, {name: "by a connection", values: v("connection_throttles")}]),
      one("latency", "Time in the server", "milliseconds", [{name: "p50", values: v("p50_ms")}, {name: "p99", values: v("p99_ms")}]),
      one("class", "Query classes", "reads a second", [{name: "point", values: v("point_reads")}, {name: "row range", values: v("row_range_reads")},
        {name: "partition range", values: v("partition_range_reads")}, {name: "table scan", values: v("table_scan_reads")}]),
      one("rows", "Rows read and returned", "rows a second", [{name: "read", values: v("rows_read")}, {name: "returned", values: v("rows_returned")}]));
    for (const id of opened) charts.querySelector(`[data-plot="${id}"] details`).open = true;
  }
  function drawHead() {
    head.replaceChildren(...[h("h1", {}, at.table), badge(info.status, STATUS_BADGE[info.status]), info.under_way ? states(info.status) : null,
      info.capacity_mode ? badge(info.capacity_mode === "PROVISIONED" ? "provisioned" : "on demand") : null,
      info.limits ? badge(`limits: ${info.limits}`) : null, h("span", {class: "quiet"}, `storage ${bytes(info.bytes)}`),
      h("a", {class: "grow", href: address({view: "data", of: at.table}), "data-to": address({view: "data", of: at.table})}, "Browse its rows")].filter(Boolean));
    throttles.replaceChildren(info.throttled.length
      ? tableOf("Throttles by limit", [{text: "Limit"}, {text: "What it limits"}, {text: "Limit a second", n: true}, {text: "Refused", n: true}, {text: "In shadow", n: true}, {text: "Last", n: true}],
        info.throttled.map(x => [x.limit, x.what, number(x.rate), number(x.refused), number(x.shadowed), `${number(seconds_ago(x.last_at))} s ago`]))
      : h("p", {class: "quiet"}, "No request of this table has passed a limit since the table's first request."));
  }
  async function renewStatements() {
    const {statements: list} = await get("/api/statements", {keyspace, table});
    if (statements.contains(document.activeElement) && statements.querySelector("details[open]")) return;
    statements.replaceChildren(list.length ? tableOf("Most expensive statements", [{text: "Statement"}, {text: "Class"}, {text: "Executions", n: true},
      {text: "Read units", n: true}, {text: "Write units", n: true}, {text: "Units each", n: true}, {text: "Units, last minute", n: true}, {text: "Rows read / returned", n: true}, {text: "Throttles", n: true}, {text: "Charged by rules"}],
    list.map(x => [h("code", {}, x.statement), x.guidance_class ?? "write", number(x.requests), number(x.read_units), number(x.write_units),
      number(x.requests > x.throttles ? (x.read_units + x.write_units) / (x.requests - x.throttles) : 0), number(x.read_units_last_minute + x.write_units_last_minute),
      `${number(x.rows_read)} / ${number(x.rows_returned)}`, x.throttles ? badge(number(x.throttles), "bad") : "0",
      h("ul", {class: "plain small"}, x.reasons.map(r => h("li", {title: r.text}, r.rule)), h("li", {}, h("a", {href: address({view: "statement", statement: x.statement}), "data-to": address({view: "statement", statement: x.statement})}, "explain")))]))
      : h("p", {class: "quiet"}, "No statement of this table has been seen yet."));
  }
  open.renew = () => renew().catch(failed);
  let beat = 0;
  async function renew() {
    const slow = windowAt > 0 && beat++ % 5;
    if (slow) return;
    const asked = windowAt;
    countStorage();
    const a = await get("/api/history", {...query(), since: lastSlot || undefined});
    if (asked !== windowAt) return;
    ({series, table: info} = a);
    shape = a;
    for (const p of a.points) points.set(p[0], p);
    for (const slot of points.keys()) if (slot < a.last + 1 - a.slots) points.delete(slot);
    lastSlot = Math.max(a.last - 1, 1);
    await Promise.all([maps.range.renew(query()), maps.partition.renew(query()), beat % 3 === 1 || !statements.children.length ? renewStatements() : null]);
    if (asked !== windowAt) return;
    drawHead();
    drawMaps();
    drawCharts();
  }
  return {title: at.table, every: 1, renew, redraw: () => { partitionMap.draw(); rangeMap.draw(); }};
}

/* ---- statements ---- */

// later: this page is not the first one
function answerOf(a, more, later) {
  const tiles = h("dl", {class: "tiles"}, [[a.rows && (a.next || later) ? "Units of this page" : a.complete ? "Units" : "Units, at least", number(a.units)], ["Pages", number(a.pages)], a.kind === "read" ? ["Query class", a.guidance.class] : ["Kind", "write, not carried out"],
    ["Partitions", number(a.partitions)], ["Rows read", number(a.rows_read)], ["Rows returned", number(a.rows_returned)],
    ["Encoded bytes", number(a.row_bytes + a.static_bytes)]].map(([dt, dd]) => h("div", {class: "tile"}, h("dt", {}, dt), h("dd", {}, dd))));
  return [tiles, a.complete ? null : h("p", {class: "finding warn card"}, `The statement has more pages than could be read in time: the price is that of the first ${number(a.pages)}.`),
    a.guidance ? h("section", {class: "card"}, h("h2", {}, `Guidance: ${a.guidance.class}`), h("p", {}, a.guidance.rating),
      tableOf("Granularity of partition keys", [{text: "Partition key"}, {text: "Partitions"}, {text: "Gains"}, {text: "But"}, {text: "Applies"}],
        a.guidance.granularities.map(g => [g.name, g.keys, g.gains, g.costs, g.name === a.guidance.granularity ? "to this table" : ""]))) : null,
    h("section", {class: "card"}, h("h2", {}, "Charged by these rules"), h("ul", {}, a.reasons.map(r => h("li", {}, h("strong", {}, r.rule), `: ${r.text}`))),
      a.advice ? h("p", {class: "finding warn card"}, a.advice) : null),
    a.rows ? h("section", {class: "card"}, h("h2", {}, `Rows (${a.rows.length}${a.next ? ", and more" : ""})`),
      tableOf("Rows", a.columns.map(c => ({text: `${c.name} (${c.type})`})), a.rows.map(r => r.map(valueOf))),
      h("div", {class: "row"}, a.next ? h("button", {type: "button", onclick: more}, "Next page") : null)) : null].filter(Boolean);
}

function statementPage(at) {
  const text = h("textarea", {id: "cql", spellcheck: "false", "aria-label": "CQL statement", placeholder: "SELECT * FROM keyspace.table WHERE ..."});
  const level = h("select", {"aria-label": "Consistency"}, ["LOCAL_QUORUM", "LOCAL_ONE"].map(x => h("option", {}, x)));
  const out = h("div", {"aria-live": "polite"});
  const run = async (path, next) => {
    out.replaceChildren(h("p", {class: "quiet"}, "Running…"));
    try {
      const a = await post(path, text.value, {consistency: level.value, ...(path === "/api/query" ? {rows: 100} : {}), ...(next ? {next} : {})});
      out.replaceChildren(...answerOf(a, () => run(path, a.next), next));
      says.textContent = `${number(a.units)} units`;
    } catch (e) { out.replaceChildren(errorBox(e)); signIn(e); }
  };
  text.value = at.statement ?? "";
  text.addEventListener("keydown", e => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) run("/api/explain"); });
  main.replaceChildren(h("div", {class: "head"}, h("h1", {}, "Statement")),
    h("section", {class: "card"}, h("p", {class: "quiet"}, "What a statement costs, and why. A SELECT is run; INSERT, UPDATE, DELETE and BATCH are priced against the rows that are there, and change nothing. Neither is charged to a table."),
      text, h("div", {class: "row"}, h("button", {type: "button", class: "first", onclick: () => run("/api/explain")}, "Explain"),
        h("button", {type: "button", onclick: () => run("/api/query")}, "Run SELECT"), level, h("span", {class: "quiet small"}, "Ctrl+Enter explains"))), out);
  return {title: "Statement"};
}

const quoted = name => /^[a-z][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;

function dataPage() {
  const of = new URLSearchParams(location.search).get("of");
  const select = h("select", {"aria-label": "Table"}), rows = h("select", {"aria-label": "Rows a page"}, [20, 100, 1000].map(n => h("option", {value: n}, `${n} rows`)));
  const out = h("div", {"aria-live": "polite"}), shown = h("p", {class: "quiet"});
  const run = async next => {
    const [keyspace, table] = JSON.parse(select.value), cql = `SELECT * FROM ${quoted(keyspace)}.${quoted(table)}`;
    go(address({view: "data", of: `${keyspace}.${table}`}), true);
    shown.replaceChildren(h("code", {}, cql), " ", h("a", {href: address({view: "statement", statement: cql}), "data-to": address({view: "statement", statement: cql})}, "Edit this statement"));
    try {
      const a = await post("/api/query", cql, {rows: rows.value, ...(next ? {next} : {})});
      out.replaceChildren(...answerOf(a, () => run(a.next), next));
    } catch (e) { out.replaceChildren(errorBox(e)); signIn(e); }
  };
  main.replaceChildren(h("div", {class: "head"}, h("h1", {}, "Data")), h("section", {class: "card"},
    h("div", {class: "row"}, select, rows, h("button", {type: "button", class: "first", onclick: () => run()}, "Show rows")), shown), out);
  (async () => {
    let next = null;
    for (let i = 0; i < 20; i++) {
      const a = await get("/api/tables", {after: next});
      select.append(...a.tables.map(t => h("option", {value: JSON.stringify([t.keyspace, t.table]), selected: `${t.keyspace}.${t.table}` === of}, `${t.keyspace}.${t.table}`)));
      next = a.next;
      if (!next) break;
    }
    if (of) run();
    if (!select.children.length) shown.textContent = "There are no tables yet.";
  })().catch(failed);
  return {title: "Data"};
}

/* ---- cost ---- */

function readPrices(text) {
  const rows = text.split("\n").filter(x => x && !x.startsWith("#")).map(x => x.split(","));
  const date = rows.find(r => r[0] === "date")?.[1], heads = rows.find(r => r[0] === "region");
  const regions = rows.filter(r => r[0] !== "date" && r[0] !== "region").map(r => Object.fromEntries(r.map((v, i) => [heads[i], i ? (v === "" ? null : Number(v)) : v])));
  return {date, regions};
}

function costPage(at) {
  const HOURS = 730, out = h("div"), note = h("p", {class: "quiet"}), warnings = h("div");
  const region = h("select", {"aria-label": "Region"}), window_ = h("select", {"aria-label": "Load of the last"}, WINDOWS.slice(1).map(([a], i) => h("option", {value: i + 1}, a)));
  main.replaceChildren(h("div", {class: "head"}, h("h1", {}, "A month's cost")), h("section", {class: "card"}, h("div", {class: "row"}, region, window_), note, warnings, out));
  // Tables with charges that are not watched: they have no history to price.
  async function unwatched() {
    const list = [];
    for (let after = null, i = 0; i < 20; i++) {
      const a = await get("/api/tables", {after});
      list.push(...a.tables.filter(t => !t.watched && t.counted));
      after = a.next;
      if (!after) break;
    }
    return list;
  }
  const dollars = v => v === null ? "–" : v < .01 && v > 0 ? "< $0.01" : `$${v.toLocaleString("en", {minimumFractionDigits: 2, maximumFractionDigits: 2})}`;
  const day = 24 * 3600 * 1000, OLD = 90; // days
  async function draw(prices) {
    const rest = await unwatched();
    const p = prices.regions.find(r => r.region === region.value), tables = (await get("/api/tables", {})).tables.filter(t => t.watched);
    const rows = await Promise.all(tables.map(async t => {
      const a = await get("/api/history", {keyspace: t.keyspace, table: t.table, window: window_.value});
      const at = name => a.series.findIndex(x => x.name === name) + 1, n = a.series.length;
      const begin = a.points.length ? Math.max(a.points[0][0], a.first) : a.last, slots = a.last - begin + 1;
      const mean = name => a.points.reduce((sum, x) => sum + x[at(name)], 0) / slots;
      const most = name => a.points.reduce((m, x) => Math.max(m, x[at(name)]), 0);
      const read = mean("read_units"), write = mean("write_units"), peak = [most("read_units"), most("write_units")].map(x => Math.ceil(x / .7));
      const storage = t.bytes === null || p.storage_gb_month === null ? null : t.bytes / 1e9 * p.storage_gb_month;
      const demand = (read * p.read_unit + write * p.write_unit) * HOURS * 3600, provisioned = (peak[0] * p.read_unit_hour + peak[1] * p.write_unit_hour) * HOURS;
      return {name: tableLink(t.keyspace, t.table), read, write, peak, demand, provisioned, storage};
    }));
    const sum = f => rows.reduce((a, r) => a + (f(r) ?? 0), 0);
    out.replaceChildren(rows.length ? tableOf("A month's cost by table", [{text: "Table"}, {text: "Read units/s", n: true}, {text: "Write units/s", n: true}, {text: "On demand", n: true},
      {text: "Provisioned (units)", n: true}, {text: "Provisioned", n: true}, {text: "Storage", n: true}],
    [...rows.map(r => [r.name, number(r.read), number(r.write), dollars(r.demand), `${r.peak[0]} / ${r.peak[1]}`, dollars(r.provisioned), dollars(r.storage)]),
      [rest.length ? "These tables" : "All tables", number(sum(r => r.read)), number(sum(r => r.write)), dollars(sum(r => r.demand)), "", dollars(sum(r => r.provisioned)), dollars(sum(r => r.storage))]])
      : h("p", {class: "quiet"}, "No table has had requests yet."));
    note.textContent = `If the load of the last ${WINDOWS[window_.value][0]} went on for a month of ${HOURS} hours, in US dollars, at the prices of ${prices.date}. Provisioned: capacity for the busiest mean of the window at 70 % use. ` +
      "A keyspace in several Regions pays for writes and storage in each of them. tally capacity prices whole workloads, with point-in-time recovery, TTL deletes and several Regions.";
    const age = Math.floor((Date.now() - Date.parse(prices.date)) / day);
    warnings.replaceChildren(...[
      rest.length ? h("p", {class: "finding warn card", "data-left-out": String(rest.length)}, `Not in the sum: ${number(rest.length)} ${rest.length === 1 ? "table that has" : "tables that have"} charges and no history: `,
        ...rest.slice(0, 10).flatMap((t, i) => [i ? ", " : "", tableLink(t.keyspace, t.table)]), rest.length > 10 ? ", and others" : "", ".") : null,
      h("p", {class: age > OLD ? "finding warn card" : "quiet", "data-price-age": String(age)}, `The prices were read ${number(age)} days ago${age > OLD ? ": compare them with AWS's page before you rely on this" : ""}.`)].filter(Boolean));
  }
  (async () => {
    const prices = readPrices(await (await fetch("/prices.csv")).text());
    region.append(...prices.regions.filter(r => r.read_unit !== null).map(r => h("option", {}, r.region)));
    for (const x of [region, window_]) x.addEventListener("change", () => draw(prices).catch(failed));
    await draw(prices);
  })().catch(failed);
  return {title: "Cost"};
}

/* ---- migration ---- */

function migrationPage() {
  const out = h("div");
  main.replaceChildren(h("div", {class: "head"}, h("h1", {}, "What Amazon Keyspaces would refuse")), h("section", {class: "card"}, out));
  return {title: "Migration", every: 5, async renew() {
    if (!session.report) {
      out.replaceChildren(h("p", {}, "This report is kept by a server that starts with ", h("code", {}, "--compatibility report"), ": it runs what Amazon Keyspaces would refuse, and notes each use here."));
      return;
    }
    const a = await get("/api/rows", {of: "compatibility"});
    for (let next = a.next; next && a.rows.length < 10000;) { // an answer has 1,000 rows at most
      const page = await get("/api/rows", {of: "compatibility", next});
      a.rows.push(...page.rows);
      next = page.next;
    }
    const at = name => a.columns.findIndex(c => c.name === name);
    out.replaceChildren(a.rows.length ? tableOf("Uses of what Amazon Keyspaces would refuse", [{text: "Statement"}, {text: "Table"}, {text: "What it says"}, {text: "Instead"}, {text: "Uses", n: true}, {text: "Last", n: true}],
      a.rows.map(r => [h("code", {}, r[at("statement")] || "other statements"), r[at("table_name")] ? `${r[at("keyspace_name")]}.${r[at("table_name")]}` : "", r[at("words")] ?? "", r[at("instead")] ?? "", r[at("uses")], r[at("last_seen")]]))
      : h("p", {class: "quiet"}, "Nothing so far: every statement would run on Amazon Keyspaces."));
  }};
}

/* ---- signing in ---- */

function signIn(e) { if (e instanceof Refused && e.status === 401) open(); }

function loginPage() {
  const name = h("input", {name: "role", autocomplete: "username", required: true}), password = h("input", {name: "password", type: "password", autocomplete: "current-password", required: true});
  const said = h("div");
  const submit = async e => {
    e.preventDefault();
    said.replaceChildren();
    try {
      await post("/api/login", `${name.value}\n${password.value}`);
      await start();
    } catch (x) { said.replaceChildren(errorBox(x)); }
  };
  main.replaceChildren(h("form", {class: "card login", onsubmit: submit}, h("h1", {}, "Sign in"),
    h("p", {class: "quiet"}, "With a role of this server. Pictures need its permission to SELECT on system_metering; statements run with its permissions."),
    h("label", {}, "Role", name), h("label", {}, "Password", password), h("button", {class: "first"}, "Sign in"), said));
  return {title: "Sign in"};
}

/* ---- the loop ---- */

function failed(e) {
  live.className = "live off";
  main.classList.toggle("old", !(e instanceof Refused)); // its numbers are those of the last answer
  live.textContent = e instanceof Refused ? e.message : "the server does not answer";
  if (e instanceof Refused && e.status !== 401 && main.querySelector(".quiet, h1")) {
    if (!main.querySelector(".error")) main.append(errorBox(e));
  }
  signIn(e);
}

async function beat(mine) {
  if (mine !== turn) return;
  const begun = performance.now();
  try {
    if (!document.hidden && view.renew) {
      await view.renew();
      if (mine !== turn) return;
      main.querySelector(":scope > .error")?.remove();
      main.classList.remove("old");
      live.className = "live on";
      live.textContent = "live";
      document.documentElement.dataset.ready = "yes";
    }
  } catch (e) {
    if (mine !== turn) return;
    failed(e);
  }
  timer = setTimeout(() => beat(mine), Math.max(250, view.every * 1000 - (performance.now() - begun)));
}

function open() {
  const at = place(), views = {overview, table: tablePage, statement: statementPage, data: dataPage, cost: costPage, migration: migrationPage};
  clearTimeout(timer);
  turn++;
  delete document.documentElement.dataset.ready;
  for (const a of document.querySelectorAll("#nav a")) {
    if (a.dataset.go === (at.view === "table" ? "overview" : at.view)) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  view = session.login && !session.role ? loginPage() : (views[at.view] ?? overview)(at);
  document.title = `${view.title} – Tally`;
  main.classList.remove("old");
  live.className = view.renew ? "live" : "live on";
  live.textContent = view.renew ? "connecting" : "ready";
  if (view.renew) beat(turn);
  else document.documentElement.dataset.ready = "yes";
}

async function start() {
  session = await ask("/api/session");
  const out = h("button", {type: "button", onclick: async () => { await post("/api/logout", ""); await start(); }}, "Sign out");
  document.getElementById("who").replaceChildren(...(session.role ? [`${session.role} `, out] : []));
  open();
}

theme(stored("theme"));
start().catch(failed);
