// Text of figures and times.

export function number(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const digits = Math.abs(value) >= 99.95 ? 0 : Math.abs(value) < 9.995 ? 2 : 1;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

// At most six characters.
export function short(value) {
  if (!Number.isFinite(value) || value === null || Math.abs(value) < 99_999.5) return number(value);
  const [unit, name] = Math.abs(value) < 999_500 ? [1e3, "k"] : Math.abs(value) < 999.5e6 ? [1e6, "M"] : [1e9, "G"];
  return `${(value / unit).toLocaleString("en-US", { maximumSignificantDigits: 3, useGrouping: false })}${name}`;
}

export function capacity(bytes) {
  let step = 0;
  for (const names = ["B", "kB", "MB", "GB", "TB", "PB"]; ; step++, bytes /= 1000)
    if (bytes < 999.5 || step === names.length - 1) return `${number(bytes)} ${names[step]}`;
}

function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds)), pad = (value) => String(value).padStart(2, "0");
  const minutes = Math.floor(whole / 60) % 60, hours = Math.floor(whole / 3600);
  return hours ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
}

// As in the terminal: "1:15 of 12:00", "13:00 (planned: 12:00)", "1:15".
export function passed(seconds, expected) {
  if (!(expected > 0)) return clock(seconds);
  const late = Math.floor(seconds) > Math.ceil(expected);
  return late ? `${clock(seconds)} (planned: ${clock(expected)})` : `${clock(seconds)} of ${clock(expected)}`;
}

export function duration(seconds) {
  if (seconds < 120) return `${number(Math.round(seconds))} s`;
  if (seconds < 7200) return `${number(Math.round(seconds / 60))} min`;
  if (seconds < 172800) return `${number(seconds / 3600)} h`;
  return `${number(seconds / 86400)} days`;
}

// The time of day, with the day where it is not the one of `now`; both in ms.
export function moment(ms, now) {
  const when = new Date(ms), time = when.toLocaleTimeString([], { hour12: false });
  if (when.toDateString() === new Date(now).toDateString()) return time;
  return `${when.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}
