/** Subtitles of a file: blocks before the first cue (styles, regions), and the cues. */
export interface Subtitles {
  readonly head: readonly string[];
  readonly cues: readonly Cue[];
  /** Time zero of the cues on the timeline of transport streams, in seconds; null where nothing states it. */
  readonly zeroSeconds: number | null;
}

export interface Cue {
  readonly startSeconds: number;
  readonly endSeconds: number;
  /** Settings after the times: position, alignment. */
  readonly settings: string;
  readonly lines: readonly string[];
}

/** Limit of a subtitle file, in bytes: a day of dense subtitles has some megabytes. */
export const MAX_SUBTITLES_BYTES = 32 * 1024 * 1024;

const TIMES =
  /^\s*(?:(\d{1,6}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?\s*-->\s*(?:(\d{1,6}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?(.*)$/;

/** Reads WebVTT or SubRip. Skips blocks that are neither cues nor styles, as players do. */
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
      shiftSeconds = mapped === null || zeroSeconds === null ? 0 : wrapMpegTime(mapped - zeroSeconds);
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

/** Ticks of a transport stream per second, and the number after which its clock wraps. */
const TICKS_PER_SECOND = 90_000;
const WRAP_TICKS = 2 ** 33;

/** Returns the time of transport streams at which the time of a segment is zero, by its header (RFC 8216 §3.5). */
function zeroIn(header: readonly string[]): number | null {
  const map = header.find((line) => line.startsWith('X-TIMESTAMP-MAP=')) ?? '';
  const [, ticks] = /MPEGTS:(\d{1,10})(?!\d)/.exec(map) ?? [];
  const [, ...local] = /LOCAL:(?:(\d{1,6}):)?(\d{1,2}):(\d{1,2})(?:\.(\d{1,3}))?/.exec(map) ?? [];
  return ticks === undefined || local.length === 0 ? null : Number(ticks) / TICKS_PER_SECOND - secondsOf(local);
}

/** Returns the shorter distance on the clock of transport streams, which wraps every 26.5 hours. */
export function wrapMpegTime(seconds: number): number {
  const over = WRAP_TICKS / TICKS_PER_SECOND;
  return seconds - Math.round(seconds / over) * over;
}

function shifted(cue: Cue | null, seconds: number): Cue | null {
  if (cue === null || seconds === 0) return cue;
  const startSeconds = Math.max(cue.startSeconds + seconds, 0);
  const endSeconds = cue.endSeconds + seconds;
  return endSeconds <= startSeconds ? null : { ...cue, startSeconds, endSeconds };
}

/** Shifts all cues. A cue that would start before zero starts there. */
export function shiftCues(subtitles: Subtitles, seconds: number): Subtitles {
  return { ...subtitles, cues: subtitles.cues.flatMap((cue) => shifted(cue, seconds) ?? []) };
}

/** Decodes UTF-8 and UTF-16. Other bytes are read as Windows-1252, the encoding of most old subtitles. */
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

/** Recognises UTF-16 by its byte order mark, or by the zeros beside the ASCII characters that it starts with. */
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

/** Returns a cue without text that means nothing to WebVTT; null where it is never shown, or shows nothing. */
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

/** Drops cues that start after the end, and cuts the others there. */
export function clipCues({ cues, ...others }: Subtitles, endSeconds: number): Subtitles {
  const kept = cues.filter(({ startSeconds }) => startSeconds < endSeconds);
  return { ...others, cues: kept.map((cue) => ({ ...cue, endSeconds: Math.min(cue.endSeconds, endSeconds) })) };
}

/** Returns the text of a WebVTT file. */
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
