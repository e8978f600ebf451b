import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { sideBySide } from '#bytes/side-by-side.ts';
import type { FolderFile, SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { ProbedFolder } from '../planning/plan-packaging.ts';
import { parseTimedText } from '../subtitles/timed-text.ts';
import { LARGEST_SUBTITLES_BYTES, parseSubtitles, type Subtitles } from '../subtitles/web-vtt.ts';
import { BrokenMedia } from './broken-media.ts';
import { probeMedia } from './probe-media.ts';
import { NO_DETAILS, type ProbedFile, type UnusableFile } from './probed-file.ts';
import { sniffForeign } from './sniff-container.ts';

/** Files that are probed at once. */
const PROBES_AT_ONCE = 4;

/** Names that promise media: what bears one and is none is an error, not something to pass over. */
const MEDIA_EXTENSION =
  /\.(?:mp4|m4v|m4a|mov|qt|mkv|mka|webm|ts|mts|m2ts|mp3|wav|flac|aac|ac3|eac3|ogg|oga|opus|avi|mpg|mpeg|wmv|flv|3gp|3g2|f4v|cmfv|cmfa|cmft|vtt|srt|ttml|dfxp)$/i;

/** Looks at every file of a folder. */
export async function probeFolder(folder: SourceFolder, signal: AbortSignal): Promise<Omit<ProbedFolder, 'oneTime'>> {
  const found = await sideBySide(folder.files, PROBES_AT_ONCE, (file) => probeFile(folder, file, signal));
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

/** What is said of a file that no demuxer reads. */
function verdictOn(head: Buffer, isNamedMedia: boolean): Pick<UnusableFile, 'kind' | 'problem'> {
  const foreign = sniffForeign(head);
  if (foreign === null) {
    return { kind: isNamedMedia ? 'broken' : 'not-media', problem: 'is no media, whatever its name says' };
  }
  const problem = `is ${foreign}, which is not read; rewrap it, for example with: ffmpeg -i in -c copy out.mov`;
  return { kind: 'broken', problem };
}

/** Bytes at the start of a file that say what it is: of XML, its outermost element may come late. */
const HEAD_BYTES = 512;

async function headOf(source: ByteSource, signal: AbortSignal): Promise<Buffer> {
  return await readRange(source, 0, Math.min(source.sizeBytes, HEAD_BYTES), signal);
}

/** A demuxer passes over what it does not know, and FLAC in Ogg is that to ours. */
function holdsNothingKnown(file: ProbedFile | UnusableFile): boolean {
  return 'streams' in file && file.streams.length === 0 && file.others.length === 0;
}

/** Subtitles in a file of their own, known by how WebVTT and TTML start, or by the name of SubRip, which starts anyhow. */
async function probeText(
  source: ByteSource,
  path: string,
  signal: AbortSignal,
): Promise<ProbedFile | UnusableFile | null> {
  const head = await headOf(source, signal);
  const container = textKindOf(head.toString('utf8'), path);
  if (container === null) return null;
  if (source.sizeBytes > LARGEST_SUBTITLES_BYTES) {
    throw new BrokenMedia(`has ${source.sizeBytes} bytes, and subtitles at most ${LARGEST_SUBTITLES_BYTES}`);
  }
  const { cues, zeroSeconds } = subtitlesOf(container, await readRange(source, 0, source.sizeBytes, signal), path);
  const startSeconds = cues[0]?.startSeconds ?? 0;
  const durationSeconds = cues.reduce((end, { endSeconds }) => Math.max(end, endSeconds), 0) - startSeconds;
  if (cues.length === 0)
    return { path, kind: 'not-media', problem: 'holds no subtitles: nothing in it has a time and a text' };
  const stream = {
    ...NO_DETAILS,
    kind: 'text' as const,
    indexOfKind: 0,
    codec: container,
    startSeconds,
    durationSeconds,
    zeroSeconds,
  };
  return { path, container, streams: [stream], others: [], warnings: [] };
}

/** The outermost element, behind what may stand before one in XML. */
const TTML_START = /^(?:\ufeff)?(?:\s|<\?[^>]*\?>|<!--[^>]*-->)*<(?:\w+:)?tt[\s>]/;

type TextKind = 'vtt' | 'srt' | 'ttml';

/** Every document of TTML may be called .xml, as other documents are. */
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
