import { isXml } from '#publications/playlists/read-playlists.ts';
import { HLS_READERS } from './hls-readings.ts';
import { readMpdParser } from './mpd-reading.ts';
import { judgedReading } from './own-reading.ts';
import type { Reading } from './reading.ts';

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
  const readers = isXml(text) ? { 'mpd-parser': readMpdParser } : HLS_READERS;
  const readings = Object.entries(readers).flatMap(([name, read]) => {
    const reading = read(text);
    return reading === null ? [] : [{ name, reading }];
  });
  const differences = readings.flatMap(({ name, reading }) => {
    const difference = differenceOf(flat(reading), flat(judged));
    return difference === null ? [] : [`${name} reads ${difference}`];
  });
  return { isAccepted: true, readBy: readings.map(({ name }) => name), differences };
}

/** Writes a reading as lines. */
function flat(reading: Reading): string[] {
  if (reading.kind === 'media') return ['media', ...reading.segments];
  if (reading.kind === 'mpd') return ['mpd', ...reading.representations.flatMap(({ id, segments }) => [`representation ${id}`, ...segments])];
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
