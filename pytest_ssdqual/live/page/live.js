"use strict";
// The page of a run that goes on. All text from the run becomes textContent, never markup.

const SVG = "http://www.w3.org/2000/svg";
const MOST_POINTS = 3600, MOST_LOGGED = 300, MOST_VERDICTS = 1000;
// The strip shows so much; older points are kept by the run folder.
const SPAN_MS = 15 * 60e3, LEAST_SPAN_MS = 60e3;
const WORDS = { pass: "✓ pass", fail: "✗ fail", inconclusive: "? undecided", observed: "· observed",
  error: "! error" };

const byId = (id) => document.getElementById(id);
const bays = new Map();
let counts = {}, run = {}, ended = false, caughtUp = false, dirty = true;

function element(name, attributes = {}, text = undefined) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
function shape(name, attributes = {}, text = undefined) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const digits = Math.abs(value) >= 99.95 ? 0 : Math.abs(value) < 9.995 ? 2 : 1;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}
function capacity(bytes) {
  let step = 0;
  for (const names = ["B", "kB", "MB", "GB", "TB", "PB"]; ; step++, bytes /= 1000)
    if (bytes < 999.5 || step === names.length - 1) return `${number(bytes)} ${names[step]}`;
}
function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds)), pad = (value) => String(value).padStart(2, "0");
  const minutes = Math.floor(whole / 60) % 60, hours = Math.floor(whole / 3600);
  return hours ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
}
function duration(seconds) {
  if (seconds < 120) return `${number(Math.round(seconds))} s`;
  if (seconds < 7200) return `${number(Math.round(seconds / 60))} min`;
  if (seconds < 172800) return `${number(seconds / 3600)} h`;
  return `${number(seconds / 86400)} days`;
}

function speak(text) { if (caughtUp) byId("spoken").textContent = text; }
function setState(kind, text) {
  const state = byId("state");
  if (state.dataset.state === kind && state.textContent === text) return;
  state.dataset.state = kind;
  state.textContent = text;
}

function bayOf(name) {
  if (bays.has(name)) return bays.get(name);
  const root = element("section", { class: "bay" });
  const title = element("h2", {}, name ? `Bay ${name}` : "Now");
  const doing = element("p", { class: "doing" }), steady = element("p", { class: "steady" });
  const facts = element("dl", { class: "facts" }), cards = element("div", { class: "cards" });
  const caption = element("p", { class: "caption" });
  root.append(title, doing, steady, facts, cards, caption);
  byId("bays").append(root);
  const bay = { name, root, doing, steady, facts, cards, caption, strips: [], loads: [], now: null, said: null, load: null };
  bays.set(name, bay);
  return bay;
}

// A card for the array, or for each of the drives side by side; they stay as long as the devices are the same.
function standing(bay, load) {
  const key = JSON.stringify([load.geometry, load.devices]);
  if (bay.key === key) return;
  bay.key = key;
  bay.loads = [];
  bay.cards.replaceChildren();
  bay.strips = load.devices.map((device) => {
    const card = element("article", { class: load.devices.length === 1 ? "card one" : "card" });
    const gauge = shape("svg", { class: "gauge", viewBox: "0 0 220 158", role: "img" });
    const chart = shape("svg", { role: "img" });
    card.append(element("h3", {}, device), gauge, chart);
    bay.cards.append(card);
    return { device, card, gauge, chart, points: [], peak: 0 };
  });
}

function onStrip(bay, facts) {
  if (facts.load) {
    standing(bay, facts.load);
    bay.load = facts.load;
    bay.loads.push(facts.at_ms);
    if (bay.loads.length > 200) bay.loads.shift();
    // A gap, not a line across the time in between.
    for (const strip of bay.strips) strip.points.push([facts.at_ms, null]);
    bay.now = null;
    speak(`${facts.load.phase} ${facts.load.workload} on ${facts.load.geometry}`);
  } else if (bay.load) {
    bay.now = facts;
    bay.strips.forEach((strip, index) => {
      strip.points.push([facts.at_ms, facts.iops[index]]);
      if (strip.points.length > MOST_POINTS) strip.points.shift();
    });
  }
}

function niceTop(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((each) => each * power).find((each) => each >= value * 1.001);
}

const FROM = 0.75 * Math.PI, TURN = 1.5 * Math.PI;
function at(share, radius) {
  const angle = FROM + TURN * Math.min(1, Math.max(0, share));
  return [110 + radius * Math.cos(angle), 88 + radius * Math.sin(angle)];
}
function arc(share) {
  const [x, y] = at(0, 72), [toX, toY] = at(share, 72);
  return `M${x.toFixed(1)} ${y.toFixed(1)} A72 72 0 ${share * TURN > Math.PI ? 1 : 0} 1 ${toX.toFixed(1)} ${toY.toFixed(1)}`;
}
function drawGauge(strip, load, value, top) {
  const parts = [shape("path", { class: "track", d: arc(1) })];
  if (value > 0) parts.push(shape("path", { class: "value", d: arc(Math.max(0.002, value / top)) }));
  for (const [kind, mark] of [["limit", load.limit], ["published", load.published]]) {
    if (mark === null) continue;
    const [x1, y1] = at(mark / top, kind === "limit" ? 58 : 66), [x2, y2] = at(mark / top, 86);
    parts.push(shape("line", { class: `needle-${kind}`, x1, y1, x2, y2 }));
  }
  parts.push(shape("text", { class: "big", x: 110, y: 97 }, number(value)));
  parts.push(shape("text", { class: "quiet middle", x: 110, y: 115 }, "IOPS now"));
  parts.push(shape("text", { class: "quiet middle", x: 50, y: 155 }, "0"));
  parts.push(shape("text", { class: "quiet middle", x: 170, y: 155 }, number(top)));
  strip.gauge.setAttribute("aria-label", `${strip.device}: ${number(value)} IOPS now, scale to ${number(top)}`);
  strip.gauge.replaceChildren(...parts);
}

// At most so many columns; of each the least and the largest value, so that no dip is lost.
function condensed(points, columns, from, until) {
  if (points.length <= 2 * columns) return points;
  const found = [], width = (until - from) / columns;
  let column = -1, least = null, most = null;
  const flush = () => {
    if (least) found.push(...(least === most ? [least] : least[0] < most[0] ? [least, most] : [most, least]));
    least = most = null;
  };
  for (const point of points) {
    const now = Math.floor((point[0] - from) / width);
    if (now !== column || point[1] === null) { flush(); column = now; }
    if (point[1] === null) { found.push(point); continue; }
    if (!least || point[1] < least[1]) least = point;
    if (!most || point[1] > most[1]) most = point;
  }
  flush();
  return found;
}

function drawStrip(bay, strip, load, top) {
  // Text keeps its size: a narrow card has a narrow chart.
  const width = Math.min(900, Math.max(260, strip.chart.clientWidth || 480));
  const left = 52, right = width - 10, high = 14, low = 142;
  strip.chart.setAttribute("viewBox", `0 0 ${width} 170`);
  const all = strip.points, until = all.length ? all[all.length - 1][0] : Date.now();
  const span = Math.min(SPAN_MS, Math.max(LEAST_SPAN_MS, until - (all.length ? all[0][0] : until))), from = until - span;
  const x = (ms) => left + (right - left) * (ms - from) / span, y = (value) => low - (low - high) * value / top;
  const parts = [];
  for (const share of [0, 0.5, 1]) {
    const level = y(top * share);
    parts.push(shape("line", { class: "axis", x1: left, x2: right, y1: level, y2: level }));
    parts.push(shape("text", { class: "quiet right", x: left - 6, y: level + 4 }, number(top * share)));
  }
  for (const share of [0, 0.5, 1]) {
    const ago = (span * (1 - share)) / 1000;
    parts.push(shape("text", { class: `quiet ${share === 1 ? "right" : share ? "middle" : ""}`,
      x: left + (right - left) * share, y: 160 }, ago ? `−${duration(ago)}` : "now"));
  }
  for (const turn of bay.loads)
    if (turn > from) parts.push(shape("line", { class: "turn", x1: x(turn), x2: x(turn), y1: high, y2: low }));
  const shown = condensed(all.filter((point) => point[0] >= from), 400, from, until);
  let path = "", areas = "", piece = [];
  const flush = () => {
    if (piece.length) {
      const drawn = piece.map((point) => `${x(point[0]).toFixed(1)} ${y(Math.min(point[1], top)).toFixed(1)}`);
      path += `M${drawn.join("L")}${piece.length === 1 ? "h1" : ""}`;
      areas += `M${x(piece[0][0]).toFixed(1)} ${low}L${drawn.join("L")}L${x(piece[piece.length - 1][0]).toFixed(1)} ${low}Z`;
    }
    piece = [];
  };
  for (const point of shown) if (point[1] === null) flush(); else piece.push(point);
  flush();
  if (path) parts.push(shape("path", { class: "area", d: areas }), shape("path", { class: "trace", d: path }));
  const levels = [["limit", load.limit], ["published", load.published]].filter((each) => each[1] !== null);
  const near = levels.length === 2 && Math.abs(y(levels[0][1]) - y(levels[1][1])) < 14;
  levels.forEach(([kind, value], index) => {
    const level = y(value);
    parts.push(shape("line", { class: kind, x1: left, x2: right, y1: level, y2: level }));
    const under = near && value === Math.min(levels[0][1], levels[1][1]) && index === (levels[0][1] <= levels[1][1] ? 0 : 1);
    parts.push(shape("text", { class: `${kind}-text`, x: left + 4, y: under ? level + 12 : level - 4 },
      `${kind} ${number(value)}`));
  });
  strip.chart.setAttribute("aria-label", `${strip.device}: IOPS of the last ${duration(span / 1000)}`);
  strip.chart.replaceChildren(...parts);
}

function fact(name, value) {
  const pair = element("div");
  pair.append(element("dt", {}, name), element("dd", {}, value));
  return pair;
}

function drawBay(bay) {
  const { said, load, now } = bay, seconds = Date.now() / 1000;
  if (said) {
    const elapsed = seconds - said.began_ms / 1000;
    bay.doing.textContent = said.what
      ? `${said.what} – ${ended ? "" : clock(elapsed)}${said.expected_s ? ` of ${clock(said.expected_s)}` : ""}`
      : "Nothing is being done now.";
    if (ended) bay.doing.textContent = said.what ? `Last: ${said.what}` : "What was measured last:";
    bay.steady.textContent = said.steady === null ? "Steadiness: not judged yet"
      : `${said.steady ? "✓ settled" : "… not settled yet"}: ${said.told}`;
  }
  const facts = [];
  if (load) facts.push(fact("phase", load.phase), fact("on", load.geometry));
  if (load && load.workload) facts.push(fact("workload", load.workload));
  if (now && now.rounds) facts.push(fact("round", `${now.round} of at most ${now.rounds}`));
  if (now && now.iops.length > 1)
    facts.push(fact("together", `${number(now.iops.reduce((sum, each) => sum + each, 0))} IOPS`));
  if (bay.written) facts.push(fact("written", capacity(bay.written)));
  if (said && said.ends_ms && !ended) facts.push(fact("left in all", `about ${duration(Math.max(1, said.ends_ms / 1000 - seconds))}`));
  bay.facts.replaceChildren(...facts);
  if (!load) return;
  // One scale for all, so that what is side by side can be compared.
  const recent = bay.strips.flatMap((strip) => strip.points.filter((point) => point[1] !== null && point[0] > Date.now() - SPAN_MS));
  const top = niceTop(Math.max(load.limit ?? 0, load.published ?? 0, ...recent.map((point) => point[1])) * 1.08);
  bay.strips.forEach((strip, index) => {
    drawGauge(strip, load, now && said && said.what ? now.iops[index] : null, top);
    drawStrip(bay, strip, load, top);
  });
  bay.caption.textContent = [load.limit_text, load.published_text].filter(Boolean).join("; ")
    || "No limit and no published figure for the IOPS of this.";
}

function draw() {
  if (!dirty || document.hidden) return;
  dirty = false;
  for (const bay of bays.values()) drawBay(bay);
}

function onVerdict(facts) {
  counts[facts.outcome] = (counts[facts.outcome] ?? 0) + 1;
  const word = WORDS[facts.outcome] ?? facts.outcome;
  const item = element("li", { class: Object.hasOwn(WORDS, facts.outcome) ? facts.outcome : "" });
  item.append(element("span", { class: "word" }, word), facts.sentence, element("span", { class: "test" }, facts.test));
  // Broken promises stay on top.
  const list = byId("verdicts"), broken = list.querySelectorAll(":scope > .fail");
  if (facts.outcome === "fail" || !broken.length) list.prepend(item);
  else broken[broken.length - 1].after(item);
  if (list.children.length > MOST_VERDICTS) list.lastChild.remove();
  byId("counts").textContent = Object.entries(WORDS).filter(([name]) => counts[name])
    .map(([name, each]) => `${each}: ${counts[name]}`).join(", ");
  speak(`${word.slice(2)}: ${facts.sentence}`);
}

function onLog(facts) {
  const item = element("li"), when = new Date(facts.at_ms);
  item.append(element("time", { datetime: when.toISOString() }, when.toLocaleTimeString([], { hour12: false })), facts.text);
  const list = byId("log");
  list.prepend(item);
  if (list.children.length > MOST_LOGGED) list.lastChild.remove();
}

function onRun(facts) {
  run = facts;
  byId("title").textContent = `Storage qualification: ${facts.title}`;
  byId("about").textContent = facts.about;
  document.title = `${facts.title} – live`;
}

function onEnded(facts) {
  ended = true;
  setState(facts.good ? "ended" : "failed", facts.text);
  byId("spoken").textContent = facts.text;
  document.title = `ended – ${run.title ?? "storage qualification"}`;
}

const HEARD = {
  run: onRun, log: onLog, verdict: onVerdict, ended: onEnded,
  bay: (facts) => { bayOf(facts.bay).said = facts; },
  strip: (facts) => {
    const bay = bayOf(facts.bay);
    if (facts.bytes_written) bay.written = facts.bytes_written;
    onStrip(bay, facts);
  },
};

function forget() {
  bays.clear();
  counts = {};
  for (const id of ["bays", "verdicts", "log"]) byId(id).replaceChildren();
  byId("counts").textContent = "None yet.";
}

function watch() {
  const source = new EventSource("events");
  source.onopen = () => {
    // All that is kept comes again.
    forget();
    caughtUp = false;
    setTimeout(() => { caughtUp = true; }, 1000);
    setState("running", "The run goes on. This page follows it.");
  };
  source.onerror = () => {
    if (!ended) setState("lost", "The run does not answer: it was ended, or the way to it was lost. Trying again …");
  };
  for (const [name, heard] of Object.entries(HEARD))
    source.addEventListener(name, (event) => {
      heard(JSON.parse(event.data));
      dirty = true;
      if (name === "ended") { source.close(); draw(); }
    });
}

watch();
setInterval(() => { if (!ended) dirty = true; draw(); }, 1000);
setTimeout(draw, 200);
document.addEventListener("visibilitychange", draw);
