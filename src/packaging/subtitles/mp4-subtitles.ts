import type { ByteSource } from '#bytes/byte-source.ts';
import { Box } from '#formats/isobmff/box.ts';
import { readTextTrack, type TextSample } from './movie-samples.ts';
import { parseTimedText } from './timed-text.ts';
import { type Cue, makeCue, parseSubtitles, type Subtitles } from './web-vtt.ts';

/** Pieces of one cue lie so close to each other, in seconds. */
const JOINT_SECONDS = 0.002;

/**
 * Reads the subtitles of one track out of an MP4 file: WebVTT (`wvtt`) or TTML (`stpp`), both of ISO/IEC 14496-30.
 * `indexOfKind` counts the tracks of subtitles, from zero.
 */
export async function readMp4Subtitles(
  source: ByteSource,
  indexOfKind: number,
  signal: AbortSignal,
): Promise<Subtitles> {
  const track = await readTextTrack(source, indexOfKind, signal);
  if (track === null) return { head: [], cues: [], zeroSeconds: null };
  const { sampleEntry, samples } = track;
  const read = sampleEntry.type === 'wvtt' ? cuesOfWebVtt : cuesOfTimedText;
  const cues = samples.flatMap((sample) => read(sample, source.name));
  const header = sampleEntry.type === 'wvtt' ? contentOf(sampleEntry, 'vttC', 8) : '';
  return { head: parseSubtitles(Buffer.from(header)).head, cues: joined(cues), zeroSeconds: null };
}

/** A sample holds the cues that are shown during all of its time, each in a box (§6.6); `vtte` holds none. */
function cuesOfWebVtt({ startSeconds, endSeconds, payload }: TextSample, name: string): Cue[] {
  const header = {
    type: 'sample',
    offset: 0,
    sizeBytes: payload.length,
    headerSizeBytes: 0,
    sizeForm: 'compact',
  } as const;
  return [...new Box(name, header, payload).descendants('vttc')].flatMap((cue) => {
    const lines = contentOf(cue, 'payl').split(/\r?\n/);
    return makeCue({ startSeconds, endSeconds, settings: contentOf(cue, 'sttg'), lines }) ?? [];
  });
}

/** The text in a box of a box. `skipBytes` stand before the boxes. */
function contentOf(box: Box, type: string, skipBytes = 0): string {
  const found = [...box.children(skipBytes)].find((child) => child.type === type);
  return found === undefined ? '' : found.bytes.toString('utf8', found.header.headerSizeBytes);
}

/** A sample is a document whose times are those of the movie; what it shows, it shows during its own time (§5.2). */
function cuesOfTimedText({ startSeconds, endSeconds, payload }: TextSample, name: string): Cue[] {
  return parseTimedText(payload, name).cues.flatMap((cue) => {
    const start = Math.max(cue.startSeconds, startSeconds);
    const end = Math.min(cue.endSeconds, endSeconds);
    return end <= start ? [] : [{ ...cue, startSeconds: start, endSeconds: end }];
  });
}

/** Cues as they were before samples cut them, where others began and ended. */
function joined(pieces: readonly Cue[]): Cue[] {
  const open = new Map<string, Cue & { endSeconds: number }>();
  const cues: Cue[] = [];
  for (const piece of pieces) {
    const key = JSON.stringify([piece.settings, piece.lines]);
    const last = open.get(key);
    if (last !== undefined && Math.abs(piece.startSeconds - last.endSeconds) <= JOINT_SECONDS) {
      last.endSeconds = piece.endSeconds;
      continue;
    }
    const cue = { ...piece };
    open.set(key, cue);
    cues.push(cue);
  }
  return cues.sort((first, second) => first.startSeconds - second.startSeconds);
}
