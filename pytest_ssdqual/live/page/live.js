// The page of a running run. All text from the run becomes textContent, never markup.

import { SPAN_MS, drawGauge, drawStrip, frame, niceTop, shape } from "./draw.js";
import { capacity, duration, moment, number, passed } from "./words.js";

const MOST_LOGGED = 300, MOST_VERDICTS = 1000;
const WORDS = { pass: "✓ pass", fail: "✗ fail", inconclusive: "? inconclusive", bounded: "‖ bounded", observed: "· observed", error: "! error" };
// STALE_MS: older figures are not current. SILENCE_MS: the server sends a message at least every 15 s. SPOKEN_MS: least
// time between two announcements to a screen reader.
const STALE_MS = 15e3, SILENCE_MS = 45e3, SPOKEN_MS = 20e3, RETRY_MS = 5e3, PATIENCE_MS = 8e3, SAME_MS = 500;

const byId = (id) => document.getElementById(id);
const bays = new Map();
// `skew`: clock of the run minus clock of the browser. `lostAt`: time of the last message, if the connection is lost.
let run = {}, ended = false, dirty = true, skew = 0, heardAt = Date.now(), lostAt = null, source = null;

function element(name, attributes = {}, text = undefined) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Current time by the clock of the run; with a lost connection, the time of the last message.
const nowMs = () => (lostAt ?? Date.now()) + skew;

// For screen readers: the current step and the verdicts since the last announcement.
const unsaid = { step: "", failed: [], judged: 0 };
let spokenAt = 0, caughtUp = false;
function forgetUnsaid() { Object.assign(unsaid, { step: "", failed: [], judged: 0 }); }
function speak() {
  if (!caughtUp) return forgetUnsaid();
  const { step, failed, judged } = unsaid, said = failed.slice(0, 3).map((each) => `fail: ${each}`);
  if (Date.now() - spokenAt < SPOKEN_MS || !(step || judged || said.length)) return;
  if (failed.length > 3) said.push(`and ${failed.length - 3} more failed promises`);
  if (judged) said.push(judged === 1 ? "one more verdict" : `${judged} more verdicts`);
  if (step) said.push(`now ${step}`);
  byId("spoken").textContent = said.join("; ");
  spokenAt = Date.now();
  forgetUnsaid();
}

function setState(kind, text) {
  const state = byId("state");
  if (state.dataset.state === kind && state.textContent === text) return;
  state.dataset.state = kind;
  state.textContent = text;
  if (kind !== "running" || caughtUp) byId("spoken").textContent = text;
}

function bayOf(name) {
  if (bays.has(name)) return bays.get(name);
  const root = element("section", { class: "bay" }), title = element("h2", {}, name ? `Bay ${name}` : "Now");
  const doing = element("p", { class: "doing" }), steady = element("p", { class: "steady" });
  const facts = element("dl", { class: "facts" }), cards = element("div", { class: "cards" });
  const caption = element("p", { class: "caption" });
  root.append(title, doing, steady, facts, cards, caption);
  byId("bays").append(root);
  const bay = { name, title, doing, steady, facts, cards, caption, strips: [], turns: [], now: null, said: null, load: null };
  bays.set(name, bay);
  return bay;
}

// One card for the array, or one for each of the drives side by side; rebuilt only when the devices change.
function standing(bay, load) {
  const key = JSON.stringify([load.geometry, load.devices]);
  if (bay.key === key) return;
  bay.key = key;
  bay.turns = [];
  bay.cards.replaceChildren();
  bay.strips = load.devices.map((device) => {
    const card = element("article", { class: load.devices.length === 1 ? "card one" : "card" });
    const gauge = shape("svg", { class: "gauge", viewBox: "0 0 220 158", role: "img" });
    const chart = shape("svg", { role: "img" });
    card.append(element("h3", {}, device), gauge, chart);
    bay.cards.append(card);
    return { device, gauge, chart, points: [], peak: 0 };
  });
}

function addPoint(strip, ms, value) {
  strip.points.push([ms, value]);
  while (strip.points[0][0] < ms - SPAN_MS) strip.points.shift();
}

function onLoad(facts) {
  const bay = bayOf(facts.bay);
  standing(bay, facts);
  bay.load = bay.place = facts;
  bay.now = null;
  bay.turns.push(facts.at_ms);
  while (bay.turns[0] < facts.at_ms - SPAN_MS) bay.turns.shift();
  for (const strip of bay.strips) {
    // A gap, not a line across the time in between.
    addPoint(strip, facts.at_ms, null);
    strip.peak = 0;
  }
}

function onStrip(facts) {
  const bay = bayOf(facts.bay);
  if (facts.bytes_written) bay.written = facts.bytes_written;
  if (!bay.load) return;
  bay.now = bay.place = facts;
  bay.strips.forEach((strip, index) => {
    const value = facts.iops[index] ?? null;
    addPoint(strip, facts.at_ms, value);
    strip.peak = Math.max(strip.peak, value);
  });
}

function onBay(facts) {
  const bay = bayOf(facts.bay);
  if (facts.what && facts.what !== bay.said?.what) unsaid.step = facts.what;
  // A new step clears the figures. A repeated message about the same step has the same start time.
  const again = facts.what === bay.said?.what && Math.abs(facts.began_ms - bay.said.began_ms) < SAME_MS;
  if (!again) bay.now = bay.place = null;
  bay.said = facts;
  if (facts.bytes_written) bay.written = facts.bytes_written;
}

function factsOf(bay, now) {
  const { said, load, place } = bay, facts = [];
  const fact = (name, value) => {
    const pair = element("div");
    pair.append(element("dt", {}, name), element("dd", {}, value));
    facts.push(pair);
  };
  if (load) fact("phase", load.phase);
  if (load) fact("on", load.geometry);
  if (load?.workload) fact("workload", load.workload);
  if (!ended && place?.rounds) fact("round", `${place.round} of ${place.exact ? "" : "at most "}${place.rounds}`);
  if (said) fact("steadiness", said.steady === null ? "not judged yet" : said.brief || (said.steady ? "steady" : "not steady yet"));
  if (now && now.iops.length > 1) fact("together", `${number(now.iops.reduce((sum, each) => sum + each, 0))} IOPS`);
  if (bay.written) fact("written", capacity(bay.written));
  if (!ended && said?.what && said.ends_ms !== null) {
    const left = (said.ends_ms - nowMs()) / 1000;
    fact("left in all", left > 0 ? `about ${duration(Math.max(1, left))}` : "longer than planned");
  }
  return facts;
}

function drawBay(bay) {
  const { said, load } = bay, busy = Boolean(said?.what) && !ended;
  if (said) {
    bay.steady.textContent = said.steady === null ? "" : `${said.steady ? "✓" : "…"} ${said.sentence}`;
    bay.doing.textContent = busy ? `${said.what} – ${passed((nowMs() - said.began_ms) / 1000, said.expected_s)}`
      : ended ? "Last measurement:" : "No step is running.";
  }
  if (ended) bay.title.textContent = bay.name ? `Bay ${bay.name}` : "At the end";
  // Dozens of devices are polled less often than every second.
  const stale = bay.now && nowMs() - bay.now.at_ms > Math.max(STALE_MS, 500 * bay.now.iops.length);
  const now = busy && !stale ? bay.now : null;
  bay.facts.replaceChildren(...factsOf(bay, now));
  if (!load) return;
  const last = bay.strips[0]?.points.at(-1)?.[0] ?? nowMs();
  const when = ended ? "at the end" : lostAt ? "when last heard" : "now";
  const shown = frame(bay.strips, load, ended ? last : Math.max(last, nowMs()), ended || lostAt ? "then" : "now");
  const top = niceTop(1.08 * Math.max(load.limit ?? 0, load.published ?? 0, ...bay.strips.map((strip) => strip.peak)));
  bay.strips.forEach((strip, index) => {
    drawGauge(strip, load, now?.iops[index] ?? null, top, when);
    drawStrip(strip, load, bay.turns, shown);
  });
  bay.caption.textContent = [load.limit_text, load.published_text].filter(Boolean).join("; ")
    || "The IOPS of this workload have neither a limit nor a published figure.";
}

function draw() {
  if (!dirty || document.hidden) return;
  dirty = false;
  for (const bay of bays.values()) drawBay(bay);
}

function timed(ms) {
  return element("time", { datetime: new Date(ms).toISOString() }, moment(ms, Date.now()));
}

function prepend(id, item, most) {
  const list = byId(id);
  list.prepend(item);
  if (list.children.length > most) list.lastChild.remove();
}

function onVerdict(facts) {
  const failed = facts.outcome === "fail";
  const item = element("li", { class: Object.hasOwn(WORDS, facts.outcome) ? facts.outcome : "" });
  const test = element("span", { class: "test" });
  test.append(timed(facts.at_ms), " ", facts.test);
  item.append(element("span", { class: "word" }, WORDS[facts.outcome] ?? facts.outcome), facts.sentence, test);
  // Failed promises have a list of their own, above the other verdicts.
  prepend(failed ? "failed" : "verdicts", item, MOST_VERDICTS);
  if (failed) unsaid.failed.push(facts.sentence);
  else unsaid.judged++;
}

function onTally(facts) {
  const tests = Object.entries(facts.tests).map(([name, count]) => `${number(count)} ${name}`).join(", ");
  const verdicts = Object.entries(WORDS).filter(([name]) => facts.verdicts[name])
    .map(([name, word]) => `${word}: ${number(facts.verdicts[name])}`).join(", ");
  byId("counts").textContent = [tests && `Tests: ${tests}${facts.total ? ` of ${number(facts.total)}` : ""}`, verdicts]
    .filter(Boolean).join(" · ") || "None yet.";
}

function onLog(facts) {
  const item = element("li");
  item.append(timed(facts.at_ms), facts.text);
  prepend("log", item, MOST_LOGGED);
}

function onRun(facts) {
  run = facts;
  byId("title").textContent = `Storage qualification: ${facts.title}`;
  byId("about").textContent = facts.about;
  document.title = `${facts.title} – live`;
}

function onEnded(facts) {
  ended = true;
  source.close();
  setState(facts.good ? "ended" : "failed", facts.text);
  document.title = `ended – ${run.title ?? "storage qualification"}`;
}

const HEARD = {
  run: onRun, bay: onBay, load: onLoad, strip: onStrip, log: onLog, verdict: onVerdict, failed: onVerdict, tally: onTally,
  ended: onEnded, alive: (facts) => { skew = facts.at_ms - Date.now(); },
};

function forget() {
  bays.clear();
  caughtUp = false;
  setTimeout(() => { caughtUp = true; }, 1000);
  for (const id of ["bays", "failed", "verdicts", "log"]) byId(id).replaceChildren();
  byId("counts").textContent = "None yet.";
}

function lose() {
  if (ended) return;
  lostAt ??= heardAt;
  dirty = true;
  setState("lost", "The run does not answer: it has ended, or the connection is lost. This page shows the state of "
    + `${moment(lostAt, Date.now())}. Reconnecting …`);
}

function watch() {
  const ours = source = new EventSource("events");
  ours.onopen = () => {
    // The server sends its whole backlog again.
    heardAt = Date.now();
    lostAt = null;
    forget();
    setState("running", "The run is in progress. This page follows it.");
  };
  ours.onerror = () => {
    lose();
    // Refused (too many windows, or another program has the port): the browser does not reconnect by itself.
    if (!ended && ours === source && ours.readyState === EventSource.CLOSED) setTimeout(watch, RETRY_MS);
  };
  for (const [name, heard] of Object.entries(HEARD))
    ours.addEventListener(name, (event) => {
      heardAt = Date.now();
      heard(JSON.parse(event.data));
      dirty = true;
      if (ended) draw();
    });
}

function tick() {
  if (ended) return draw();
  // A frozen tunnel or a suspended computer gives no error event.
  if (!lostAt && source.readyState === EventSource.OPEN && Date.now() - heardAt > SILENCE_MS) {
    lose();
    source.close();
    watch();
  }
  dirty = true;
  speak();
  return draw();
}

watch();
setInterval(tick, 1000);
setTimeout(draw, 200);
setTimeout(() => {
  if (byId("state").dataset.state === "waiting")
    setState("waiting", "Waiting for the run … A browser opens at most six windows of this page; close others.");
}, PATIENCE_MS);
document.addEventListener("visibilitychange", draw);
// Text keeps its size, so the drawing depends on the width, also after the last message.
window.addEventListener("resize", () => { dirty = true; draw(); });
