/** A file of subtitles as it is written anew: blocks before the first cue (styles, regions), and the cues. */
export interface Subtitles {
  readonly head: readonly string[];
  readonly cues: readonly Cue[];
  /** Where the time zero of the cues stands in the time of transport streams, in seconds; null where nothing says so. */
  readonly zeroSeconds: number | null;
}

export interface Cue {
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** What stands behind the times on their line: position, alignment. */
  readonly settings: string;
  readonly lines: readonly string[];
}

/** The largest file of subtitles that is read, in bytes: a day of dense subtitles has some megabytes. */
export const LARGEST_SUBTITLES_BYTES = 32 * 1024 * 1024;

const TIMES =
  /^\s*(?:(\d{1,6}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?\s*-->\s*(?:(\d{1,6}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?(.*)$/;

/** Reads WebVTT or SubRip. What is no cue and no style is passed over, as players do. */
export function parseSubtitles(bytes: Uint8Array): Subtitles {
  // Segments of subtitles that were joined have a header each, and repeat cues that go on from one to the next.
  const text = decodeText(bytes)
    .replace(/\r\n?/g, '\n')
    .replace(/^\ufeff?WEBVTT(?=[ \t\n]|$)/gm, '\n\nWEBVTT');
  const seen = new Set<string>();
  const head: string[] = [];
  const cues: Cue[] = [];
  let zeroSeconds: number | null = null;
  let shiftSeconds = 0;
  for (const block of text.split(/\n[ \t]*\n+/)) {
    const lines = block.split('\n').filter((line) => line.trim() !== '');
    if (lines[0]?.startsWith('WEBVTT')) {
      // Times may count from the start of each segment: they are brought to those of the first.
      const mapped = zeroIn(lines);
      zeroSeconds ??= mapped;
      shiftSeconds = mapped === null || zeroSeconds === null ? 0 : turnedOver(mapped - zeroSeconds);
    }
    const at = lines.findIndex((line) => TIMES.test(line));
    if (at === -1) {
      if (cues.length === 0 && /^(?:STYLE|REGION)\b/.test(lines[0] ?? '')) head.push(lines.join('\n'));
      continue;
    }
    const cue = shifted(cueOf(lines[at] as string, lines.slice(at + 1)), shiftSeconds);
    const key = JSON.stringify(cue);
    if (cue !== null && !seen.has(key)) cues.push(cue);
    seen.add(key);
  }
  return { head, cues: cues.sort((first, second) => first.startSeconds - second.startSeconds), zeroSeconds };
}

/** Ticks of a transport stream in a second, and after how many its time starts again. */
const TICKS_PER_SECOND = 90_000;
const TICKS_UNTIL_OVER = 2 ** 33;

/** The time of transport streams at which a segment's own time is zero, by its header (RFC 8216 §3.5). */
function zeroIn(header: readonly string[]): number | null {
  const map = header.find((line) => line.startsWith('X-TIMESTAMP-MAP=')) ?? '';
  const [, ticks] = /MPEGTS:(\d{1,10})(?!\d)/.exec(map) ?? [];
  const [, ...local] = /LOCAL:(?:(\d{1,6}):)?(\d{1,2}):(\d{1,2})(?:\.(\d{1,3}))?/.exec(map) ?? [];
  return ticks === undefined || local.length === 0 ? null : Number(ticks) / TICKS_PER_SECOND - secondsOf(local);
}

/** A distance on a clock that starts again every day, as the shorter of its two. */
export function turnedOver(seconds: number): number {
  const over = TICKS_UNTIL_OVER / TICKS_PER_SECOND;
  return seconds - Math.round(seconds / over) * over;
}

function shifted(cue: Cue | null, seconds: number): Cue | null {
  if (cue === null || seconds === 0) return cue;
  const startSeconds = Math.max(cue.startSeconds + seconds, 0);
  const endSeconds = cue.endSeconds + seconds;
  return endSeconds <= startSeconds ? null : { ...cue, startSeconds, endSeconds };
}

/** The same, so much later, or earlier: what would start before zero starts there. */
export function shiftCues(subtitles: Subtitles, seconds: number): Subtitles {
  return { ...subtitles, cues: subtitles.cues.flatMap((cue) => shifted(cue, seconds) ?? []) };
}

/** Bytes that are neither UTF-8 nor UTF-16 are taken for Windows-1252, which most old subtitles are in. */
export function decodeText(bytes: Uint8Array): string {
  const utf16 = utf16Of(bytes);
  if (utf16 !== null) return new TextDecoder(utf16).decode(bytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // Not UTF-8.
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/** Which UTF-16 text is, by its byte order mark, or by the zeros beside the digits and letters that it starts with. */
function utf16Of([first, second, third, fourth]: Uint8Array): 'utf-16le' | 'utf-16be' | null {
  if (first === 0xff && second === 0xfe) return 'utf-16le';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  if (first !== 0 && second === 0 && third !== 0 && fourth === 0) return 'utf-16le';
  return first === 0 && second !== 0 && third === 0 && fourth !== 0 ? 'utf-16be' : null;
}

function cueOf(times: string, lines: readonly string[]): Cue | null {
  const fields = TIMES.exec(times);
  if (fields === null) return null;
  const [, ...parts] = fields;
  const startSeconds = secondsOf(parts.slice(0, 4));
  const endSeconds = secondsOf(parts.slice(4, 8));
  return makeCue({ startSeconds, endSeconds, settings: parts[8] ?? '', lines });
}

/** A cue without what means nothing to WebVTT; null where it is never shown, or shows nothing. */
export function makeCue({ startSeconds, endSeconds, settings, lines }: Cue): Cue | null {
  // A line without anything on it would end the cue, as would an arrow. SubRip has fonts and positions in the text: what
  // starts like one ends before the next one starts, so that a line of unfinished ones is read once, not once for each.
  const plain = lines.map((line) => line.replace(/<\/?font[^<>]*>|\{\\[^{}]*\}|\0/gi, '').replaceAll('-->', '->'));
  const shown = plain.filter((line) => line.trim() !== '');
  if (endSeconds <= startSeconds || shown.length === 0) return null;
  // SubRip puts coordinates behind the times (X1:…).
  return { startSeconds, endSeconds, settings: settings.trim().replace(/\b[XY][12]:\S*\s*/g, ''), lines: shown };
}

function secondsOf([hours = '0', minutes = '0', seconds = '0', fraction = '0']: readonly (
  | string
  | undefined
)[]): number {
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) + Number(fraction.padEnd(3, '0')) / 1000;
}

/** Drops cues that start after the end, and ends the last ones there. */
export function clipCues({ cues, ...others }: Subtitles, endSeconds: number): Subtitles {
  const kept = cues.filter(({ startSeconds }) => startSeconds < endSeconds);
  return { ...others, cues: kept.map((cue) => ({ ...cue, endSeconds: Math.min(cue.endSeconds, endSeconds) })) };
}

export function webVttOf({ head, cues }: Pick<Subtitles, 'head' | 'cues'>): string {
  const blocks = cues.map(({ startSeconds, endSeconds, settings, lines }) => {
    const times = `${timeOf(startSeconds)} --> ${timeOf(endSeconds)}${settings === '' ? '' : ` ${settings}`}`;
    return [times, ...lines].join('\n');
  });
  return `${['WEBVTT', ...head, ...blocks].join('\n\n')}\n`;
}

function timeOf(seconds: number): string {
  const milliseconds = Math.round(seconds * 1000);
  const pad = (value: number, length = 2) => String(Math.floor(value)).padStart(length, '0');
  const [hours, minutes, rest] = [milliseconds / 3_600_000, (milliseconds / 60_000) % 60, (milliseconds / 1000) % 60];
  return `${pad(hours)}:${pad(minutes)}:${pad(rest)}.${pad(milliseconds % 1000, 3)}`;
}
