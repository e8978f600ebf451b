/** Formats sizes, times and states as words. */

const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** @param {number} bytes */
export function sizeText(bytes) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000;
  return `${NUMBER.format(value)} ${units[unit]}`;
}

/** @type {readonly [Intl.RelativeTimeFormatUnit, number][]} */
const AGES = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
];

/**
 * @param {string} iso
 * @param {number} nowMs
 */
export function ageText(iso, nowMs) {
  const ageMs = nowMs - Date.parse(iso);
  const [unit, unitMs] = AGES.find(([, ms]) => ageMs >= ms) ?? ['second', 1000];
  return RELATIVE.format(-Math.max(0, Math.floor(ageMs / unitMs)), unit);
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const CLOCK_OF_DAY = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
});

/** Returns a time of today as 14:02, and of another day with its date. @param {Date} time */
export function clockTimeText(time) {
  const isToday = time.toDateString() === new Date().toDateString();
  return (isToday ? CLOCK : CLOCK_OF_DAY).format(time);
}

/** @param {string} iso */
export function exactTime(iso) {
  return EXACT.format(new Date(iso));
}

/** @param {number} ms */
export function durationText(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${NUMBER.format(ms / 1000)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60
    ? `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/**
 * Formats a time in the programme, such as 00:01:02.6.
 * @param {number} seconds
 */
export function clockText(seconds) {
  const tenths = Math.floor(seconds * 10 + 1e-6);
  const parts = [Math.floor(tenths / 36_000), Math.floor((tenths % 36_000) / 600), Math.floor((tenths % 600) / 10)];
  const clock = parts.map((part) => String(part).padStart(2, '0')).join(':');
  return tenths % 10 === 0 ? clock : `${clock}.${tenths % 10}`;
}

/** @param {number} inputs */
export function inputsText(inputs) {
  return inputs === 1 ? '1 input' : `${inputs.toLocaleString('en')} inputs`;
}
