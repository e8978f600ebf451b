import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import type { FolderFile, SourceFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { BrokenMedia, type ProbedFile, type ProbedFolder, STREAM_DEFAULTS, type UnusableFile } from './probed-file.ts';
import { probeMedia } from './probing/probe-media.ts';
import { sniffForeign } from './probing/sniff-container.ts';
import { parseTimedText } from './subtitles/timed-text.ts';
import { MAX_SUBTITLES_BYTES, parseSubtitles, type Subtitles } from './subtitles/web-vtt.ts';

/** Files that are probed concurrently. */
const MAX_CONCURRENT_PROBES = 4;

/** Names that promise media: a file with one that is not media is an error, and is not skipped. */
const MEDIA_EXTENSION =
  /\.(?:mp4|m4v|m4a|mov|qt|mkv|mka|webm|ts|mts|m2ts|mp3|wav|flac|aac|ac3|eac3|ogg|oga|opus|avi|mpg|mpeg|wmv|flv|3gp|3g2|f4v|cmfv|cmfa|cmft|vtt|srt|ttml|dfxp)$/i;

/** Probes every file of a folder. Throws the errors of reading sources; files that cannot be packaged are in the result. */
export async function probeFolder(
  folder: SourceFolder,
  signal: AbortSignal,
): Promise<Omit<ProbedFolder, 'sharedTimeline'>> {
  const found = await mapConcurrent(folder.files, MAX_CONCURRENT_PROBES, (file) => probeFile(folder, file, signal));
  const isProbed = (file: ProbedFile | UnusableFile): file is ProbedFile => 'streams' in file;
  return {
    name: folder.name,
    files: found.filter(isProbed),
    unusable: found.filter((file) => !isProbed(file)) as UnusableFile[],
  };
}

async function probeFile(
  folder: SourceFolder,
  { path, sizeBytes }: FolderFile,
  signal: AbortSignal,
): Promise<ProbedFile | UnusableFile> {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const isNamedMedia = MEDIA_EXTENSION.test(name) && !name.startsWith('.');
  if (!isNamedMedia && (name.startsWith('.') || sizeBytes === 0))
    return { path, kind: 'not-media', problem: 'is no media' };
  if (sizeBytes === 0) return { path, kind: 'broken', problem: 'is empty (0 bytes)' };
  const source = await folder.open(path, signal);
  try {
    const probed = (await probeText(source, path, signal)) ?? (await probeMedia(source, path, signal));
    if (probed === null) return { path, ...verdictOn(await headOf(source, signal), isNamedMedia) };
    if (holdsNothingKnown(probed)) {
      return { path, kind: 'not-media', problem: 'holds no stream of a kind that is known' };
    }
    return probed;
  } catch (error) {
    if (!(error instanceof BrokenMedia)) throw error;
    return { path, kind: 'broken', problem: error.message };
  } finally {
    await source.close();
  }
}

/** Returns the problem of a file that no demuxer reads. */
function verdictOn(head: Buffer, isNamedMedia: boolean): Pick<UnusableFile, 'kind' | 'problem'> {
  const foreign = sniffForeign(head);
  if (foreign === null) {
    return { kind: isNamedMedia ? 'broken' : 'not-media', problem: 'is no media, whatever its name says' };
  }
  const problem = `is ${foreign}, which is not read; rewrap it, for example with: ffmpeg -i in -c copy out.mov`;
  return { kind: 'broken', problem };
}

/** Bytes at the start of a file by which its kind is told; in XML, the outermost element may come late. */
const HEAD_BYTES = 512;

async function headOf(source: ByteSource, signal: AbortSignal): Promise<Buffer> {
  return await readRange(source, 0, Math.min(source.sizeBytes, HEAD_BYTES), signal);
}

/** Returns whether no stream was found: our demuxer skips codecs that it does not know, such as FLAC in Ogg. */
function holdsNothingKnown(file: ProbedFile | UnusableFile): boolean {
  return 'streams' in file && file.streams.length === 0 && file.others.length === 0;
}

/**
 * Probes a subtitle file, recognised by the start of WebVTT and TTML, or by the extension of SubRip, which has no
 * signature. Null for anything else.
 */
async function probeText(
  source: ByteSource,
  path: string,
  signal: AbortSignal,
): Promise<ProbedFile | UnusableFile | null> {
  const head = await headOf(source, signal);
  const container = textKindOf(head.toString('utf8'), path);
  if (container === null) return null;
  if (source.sizeBytes > MAX_SUBTITLES_BYTES) {
    throw new BrokenMedia(`has ${source.sizeBytes} bytes, and subtitles at most ${MAX_SUBTITLES_BYTES}`);
  }
  const { cues, zeroSeconds } = subtitlesOf(container, await readRange(source, 0, source.sizeBytes, signal), path);
  const startSeconds = cues[0]?.startSeconds ?? 0;
  const durationSeconds = cues.reduce((end, { endSeconds }) => Math.max(end, endSeconds), 0) - startSeconds;
  if (cues.length === 0)
    return { path, kind: 'not-media', problem: 'holds no subtitles: nothing in it has a time and a text' };
  const stream = {
    ...STREAM_DEFAULTS,
    kind: 'text' as const,
    indexOfKind: 0,
    codec: container,
    startSeconds,
    durationSeconds,
    zeroSeconds,
  };
  return { path, container, streams: [stream], others: [], warnings: [] };
}

/** Outermost element of TTML, after what XML allows before it. */
const TTML_START = /^(?:\ufeff)?(?:\s|<\?[^>]*\?>|<!--[^>]*-->)*<(?:\w+:)?tt[\s>]/;

type TextKind = 'vtt' | 'srt' | 'ttml';

/** Recognises TTML by its content, because such documents are named .xml like any other. */
function textKindOf(head: string, path: string): TextKind | null {
  if (/^(?:\ufeff)?WEBVTT(?:[ \t\r\n]|$)/.test(head)) return 'vtt';
  if (/\.(?:ttml|dfxp)$/i.test(path) || TTML_START.test(head)) return 'ttml';
  return /\.(?:srt|vtt)$/i.test(path) ? 'srt' : null;
}

function subtitlesOf(kind: TextKind, bytes: Uint8Array, path: string): Subtitles {
  if (kind !== 'ttml') return parseSubtitles(bytes);
  try {
    return parseTimedText(bytes, path);
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    const { problem } = cause.details as { problem: string };
    throw new BrokenMedia(`cannot be read as TTML: ${problem}`, { cause });
  }
}
