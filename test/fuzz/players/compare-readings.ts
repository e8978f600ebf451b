import { isXml } from '#publications/playlists/read-playlists.ts';
import { HLS_READERS } from './hls-readings.ts';
import { readMpdParser } from './mpd-reading.ts';
import { judgedReading } from './own-reading.ts';
import type { Reading } from './reading.ts';
import { readShaka } from './shaka-reading.ts';

/** The result of a comparison: `differences` is empty where every parser reads what the judge reads. */
export interface Comparison {
  readonly isAccepted: boolean;
  /** Parsers that read the playlist. */
  readonly readBy: readonly string[];
  readonly differences: readonly string[];
}

/** Has the judge and every parser that knows it read a playlist, and compares what plays. */
export async function compareReadings(text: string): Promise<Comparison> {
  const judged = await judgedReading(text);
  if (judged === null) return { isAccepted: false, readBy: [], differences: [] };
  const readers = { ...(isXml(text) ? { 'mpd-parser': readMpdParser } : HLS_READERS), shaka: readShaka };
  const read = await Promise.all(
    Object.entries(readers).map(async ([name, read]) => ({ name, reading: await read(text) })),
  );
  const readings = read.flatMap(({ name, reading }) =>
    reading === null ? [] : [{ name, reading: withoutAdjacent(reading, judged) }],
  );
  const differences = readings.flatMap(({ name, reading }) => {
    const shown = name === 'shaka' ? withoutCut(judged, reading) : judged;
    const [read, own] = [reading, shown].map((each) => flat(comparable(each, name, text))) as [string[], string[]];
    const difference = differenceOf(read, isXml(text) ? withoutRounded(own, read) : own);
    return difference === null ? [] : [`${name} reads ${difference}`];
  });
  return { isAccepted: true, readBy: readings.map(({ name }) => name), differences };
}

/** Leaves out the files beside segments that the judge looks at by themselves. */
function withoutAdjacent(reading: Reading, judged: Reading): Reading {
  if (reading.kind !== 'mpd' || judged.kind !== 'mpd') return reading;
  const { adjacent = new Set() } = judged;
  const representations = reading.representations.map(({ id, segments }) => ({
    id,
    segments: segments.filter((segment) => !adjacent.has(segment)),
  }));
  return { ...reading, representations };
}

/** Returns what of a reading the parser of that name can tell. */
function comparable(reading: Reading, parser: string, text: string): Reading {
  if (parser === 'shaka') return asShaka(reading, text);
  if (reading.kind !== 'multivariant' || parser === 'hls.js') return reading;
  // m3u8-parser keeps renditions by type, group and name; hls-parser keeps those of the groups that variants name.
  const isKept = (rendition: string): boolean => {
    const [type = '', group = ''] = rendition.split(' ');
    return parser !== 'hls-parser' || isNamed(text, type, group);
  };
  const renditions = reading.renditions.filter(isKept).sort();
  return { ...reading, renditions: parser === 'hls-parser' ? [...new Set(renditions)] : renditions };
}

/** Returns true for a group that a variant names. */
function isNamed(text: string, type: string, group: string): boolean {
  return text.includes(`,${type}="${group}"`) || text.includes(`:${type}="${group}"`);
}

/** Returns what of a reading Shaka can tell: it sorts representations by their kind, and does not say what a playlist is for. */
function asShaka(reading: Reading, text: string): Reading {
  if (reading.kind === 'mpd') {
    const representations = reading.representations.filter(({ segments }) => segments.length > 0);
    return {
      ...reading,
      representations: representations.sort((first, second) => (keyOf(first) < keyOf(second) ? -1 : 1)),
    };
  }
  if (reading.kind === 'media') return reading;
  // It asks for renditions of the groups that variants name, and for all subtitles.
  const renditions = reading.renditions.flatMap((rendition) => {
    const [type = '', group = '', ...path] = rendition.split(' ');
    return type === 'SUBTITLES' || isNamed(text, type, group) ? [path.join(' ')] : [];
  });
  return {
    ...reading,
    variants: [...new Set([...reading.variants, ...renditions])].sort(),
    renditions: [],
    keyFrames: [],
  };
}

/** Leaves out the segments that Shaka does not play because their period does not show them: that is judged by the times of the media. */
function withoutCut(own: Reading, read: Reading): Reading {
  if (own.kind !== 'mpd' || read.kind !== 'mpd') return own;
  const left = [...read.representations];
  const representations = own.representations.map((each) => {
    const whole = `\n${each.segments.join('\n')}\n`;
    const at = left.findIndex(({ id, segments }) => {
      return id === each.id && (segments.length === 0 || whole.includes(`\n${segments.join('\n')}\n`));
    });
    const [cut] = at === -1 ? [] : left.splice(at, 1);
    // It leaves out text without a duration.
    return cut ?? (each.segments.length > 1 ? each : { ...each, segments: [] });
  });
  return { ...own, representations };
}

const keyOf = ({ id, segments }: { readonly id: string; readonly segments: readonly string[] }): string =>
  [id, ...segments].join('\n');

/**
 * Leaves out the last segment of a representation that the parser does not have: lengths of periods are rounded, and a segment
 * that begins with the end of its period is played by some players.
 */
function withoutRounded(own: readonly string[], read: readonly string[]): string[] {
  const kept: string[] = [];
  for (const [at, line] of own.entries()) {
    const isLast =
      at > 0 && !line.startsWith('representation ') && (own[at + 1]?.startsWith('representation ') ?? true);
    const isRead = read[kept.length] === line;
    const continues = (read[kept.length] ?? 'representation ').startsWith('representation ');
    if (!(isLast && !isRead && continues)) kept.push(line);
  }
  return kept;
}

/** Writes a reading as lines. */
function flat(reading: Reading): string[] {
  if (reading.kind === 'media') return ['media', ...reading.segments];
  if (reading.kind === 'mpd')
    return ['mpd', ...reading.representations.flatMap(({ id, segments }) => [`representation ${id}`, ...segments])];
  return [
    'multivariant',
    ...reading.variants.map((each) => `variant ${each}`),
    ...reading.renditions.map((each) => `rendition ${each}`),
    ...reading.keyFrames.map((each) => `key frames ${each}`),
  ];
}

/** Says where two readings part; null where they are the same. */
function differenceOf(read: readonly string[], judged: readonly string[]): string | null {
  const at = read.findIndex((line, index) => line !== judged[index]);
  if (at === -1 && read.length === judged.length) return null;
  const index = at === -1 ? read.length : at;
  return `${read[index] ?? 'nothing'} where the judge reads ${judged[index] ?? 'nothing'} (${index} of ${judged.length})`;
}
