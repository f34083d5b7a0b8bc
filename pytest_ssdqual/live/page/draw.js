// A gauge and a strip of one drive or array, drawn anew each time.

import { duration, number, short } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
// What a strip may show; the labels below it are round numbers then, and stay for a while.
const SPANS_MS = [1, 2, 4, 8, 16].map((minutes) => minutes * 60e3);
export const SPAN_MS = SPANS_MS.at(-1);
// More marks than these of where a load begins are a fence in front of the figures.
const MOST_TURNS = 20;

export function shape(name, attributes = {}, text = undefined) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// The end of a scale on which this value has its place.
export function niceTop(value) {
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

// `value` is null where nobody knows; `when` says of what moment it is.
export function drawGauge(strip, load, value, top, when) {
  const parts = [shape("path", { class: "track", d: arc(1) })];
  if (value > 0) parts.push(shape("path", { class: "value", d: arc(Math.min(1, Math.max(0.002, value / top))) }));
  for (const [kind, mark] of [["limit", load.limit], ["published", load.published]]) {
    if (mark === null) continue;
    const [x1, y1] = at(mark / top, kind === "limit" ? 58 : 66), [x2, y2] = at(mark / top, 86);
    parts.push(shape("line", { class: `needle-${kind}`, x1, y1, x2, y2 }));
  }
  parts.push(shape("text", { class: "big", x: 110, y: 97 }, short(value)));
  parts.push(shape("text", { class: "quiet middle", x: 110, y: 115 }, `IOPS ${when}`));
  parts.push(shape("text", { class: "quiet middle", x: 50, y: 155 }, "0"));
  parts.push(shape("text", { class: "quiet middle", x: 170, y: 155 }, short(top)));
  const known = value === null ? "IOPS not known" : `${number(value)} IOPS ${when}`;
  strip.gauge.setAttribute("aria-label", `${strip.device}: ${known}, scale to ${number(top)}`);
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

// What all strips of a bay show: the same time, on one scale, so that what is side by side can be compared. `word` is
// what their right end is called.
export function frame(strips, load, until, word) {
  const first = Math.min(until, ...strips.filter((strip) => strip.points.length).map((strip) => strip.points[0][0]));
  const span = SPANS_MS.find((each) => each >= until - first) ?? SPAN_MS, from = until - span;
  let peak = Math.max(load.limit ?? 0, load.published ?? 0);
  for (const strip of strips)
    for (const [ms, value] of strip.points) if (ms >= from && value > peak) peak = value;
  return { from, until, span, word, top: niceTop(peak * 1.08) };
}

function axes(frame, x, y, left, right) {
  const parts = [];
  for (const share of [0, 0.5, 1]) {
    const level = y(frame.top * share);
    parts.push(shape("line", { class: "axis", x1: left, x2: right, y1: level, y2: level }));
    parts.push(shape("text", { class: "quiet right", x: left - 6, y: level + 4 }, short(frame.top * share)));
    const ago = (frame.span * (1 - share)) / 1000;
    parts.push(shape("text", { class: `quiet ${share === 1 ? "right" : share ? "middle" : ""}`,
      x: x(frame.from + frame.span * share), y: 160 }, ago ? `−${duration(ago)}` : frame.word));
  }
  return parts;
}

function marks(load, x, y, left, right) {
  const levels = [["limit", load.limit], ["published", load.published]].filter((each) => each[1] !== null);
  const near = levels.length === 2 && Math.abs(y(levels[0][1]) - y(levels[1][1])) < 14;
  return levels.flatMap(([kind, value], index) => {
    const level = y(value);
    const under = near && index === (levels[0][1] <= levels[1][1] ? 0 : 1);
    return [shape("line", { class: kind, x1: left, x2: right, y1: level, y2: level }),
      shape("text", { class: `${kind}-text`, x: left + 4, y: under ? level + 12 : level - 4 }, `${kind} ${short(value)}`)];
  });
}

// `turns` are the times at which loads began.
export function drawStrip(strip, load, turns, frame) {
  // Text keeps its size: a narrow card has a narrow chart.
  const width = Math.min(900, Math.max(260, strip.chart.clientWidth || 480));
  const left = 52, right = width - 10, high = 14, low = 142;
  strip.chart.setAttribute("viewBox", `0 0 ${width} 170`);
  const { from, until, span, top } = frame;
  const x = (ms) => left + (right - left) * (ms - from) / span, y = (value) => low - (low - high) * value / top;
  const parts = axes(frame, x, y, left, right), seen = turns.filter((turn) => turn > from && turn <= until);
  for (const turn of seen.length > MOST_TURNS ? [] : seen)
    parts.push(shape("line", { class: "turn", x1: x(turn), x2: x(turn), y1: high, y2: low }));
  let path = "", areas = "", piece = [], least = Infinity, most = -Infinity;
  const flush = () => {
    if (piece.length) {
      const drawn = piece.map((point) => `${x(point[0]).toFixed(1)} ${y(Math.min(point[1], top)).toFixed(1)}`);
      path += `M${drawn.join("L")}${piece.length === 1 ? "h1" : ""}`;
      areas += `M${x(piece[0][0]).toFixed(1)} ${low}L${drawn.join("L")}L${x(piece.at(-1)[0]).toFixed(1)} ${low}Z`;
    }
    piece = [];
  };
  for (const point of condensed(strip.points.filter((each) => each[0] >= from && each[0] <= until), 400, from, until))
    if (point[1] === null) flush();
    else {
      piece.push(point);
      least = Math.min(least, point[1]);
      most = Math.max(most, point[1]);
    }
  flush();
  if (path) parts.push(shape("path", { class: "area", d: areas }), shape("path", { class: "trace", d: path }));
  const range = path ? `${number(least)} to ${number(most)}` : "none known";
  strip.chart.setAttribute("aria-label", `${strip.device}: IOPS of the last ${duration(span / 1000)}: ${range}`);
  strip.chart.replaceChildren(...parts, ...marks(load, x, y, left, right));
}
