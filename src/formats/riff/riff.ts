import assert from 'node:assert/strict';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { outputLengthOf, type Splice } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import { type FormatHandler, type ManifestElement, type MediaLayout, onlyReadableAlone } from '../format-handler.ts';
import { type EmbeddingPlan, placeholderDataHash, planDataHash } from '../hard-binding.ts';
import { indexLeadsInto } from './avi-index.ts';
import {
  CHUNK_HEADER_SIZE_BYTES,
  endOf,
  isWave64,
  MAX_RIFF_SIZE_BYTES,
  paddedEndOf,
  RIFF_HEADER_SIZE_BYTES,
  type RiffChunk,
  type RiffChunks,
  readChunks,
  readWideSizes,
  SIZE_UNKNOWN,
  type WideSizes,
} from './riff-chunks.ts';

const MANIFEST_CHUNK_ID = 'C2PA';
/** Chunks with an XMP packet. Adobe writes `_PMX`; C2PA readers look into `XMP `, the name in WebP. */
const XMP_CHUNK_IDS = ['_PMX', 'XMP '];
const PAD = new Uint8Array(1);

/** Kind of RIFF file that can carry a manifest. */
interface RiffForm {
  /** Form type: the four characters behind the RIFF size. */
  readonly type: string;
  readonly mediaType: string;
  readonly extensions: readonly [string, ...string[]];
  readonly hasVideo: boolean;
  /** Chunks without which nothing can be played. */
  readonly requiredChunkIds: readonly string[];
}

export const WAVE: RiffForm = {
  type: 'WAVE',
  mediaType: 'audio/wav',
  extensions: ['wav', 'wave'],
  hasVideo: false,
  requiredChunkIds: ['fmt ', 'data'],
};

/** AVI: `LIST` chunks hold the headers and the media; indexes store offsets into the media, so it must not move. */
export const AVI: RiffForm = {
  type: 'AVI ',
  mediaType: 'video/x-msvideo',
  extensions: ['avi'],
  hasVideo: true,
  requiredChunkIds: ['LIST'],
};

const FORMS: readonly RiffForm[] = [WAVE, AVI];

function riffFormOf(type: string): RiffForm | undefined {
  return FORMS.find((form) => form.type === type);
}

/** Layout of a RIFF file. */
interface RiffLayout extends MediaLayout, RiffChunks {
  readonly form: RiffForm;
  readonly name: string;
  readonly sizeBytes: number;
}

/**
 * Handler for WAVE audio and AVI video in RIFF; 64-bit WAVE (RF64, BW64) becomes plain WAVE. The manifest is a chunk
 * `C2PA`, the last one inside the RIFF chunk (C2PA 2.2, annex A.3), so that nothing in front of it moves; bytes behind
 * the RIFF chunk stay there.
 */
export const riff: FormatHandler<RiffLayout> = {
  name: 'riff',
  containers: ['WAV', 'AVI'],
  mediaType: 'audio/wav',
  nameExtensions: { audio: ['wav'], video: ['avi'], either: [] },

  matches(head) {
    if (head.length < RIFF_HEADER_SIZE_BYTES) return false;
    const text = Buffer.from(head.buffer, head.byteOffset, RIFF_HEADER_SIZE_BYTES).toString('latin1');
    const form = riffFormOf(text.slice(8));
    return isWave64(text.slice(0, 4)) ? form === WAVE : text.startsWith('RIFF') && form !== undefined;
  },

  async readLayout(source, signal) {
    const layout = await readStructure(source, signal);
    if (layout.form === AVI) await requireUnmovedMedia(source, layout, signal);
    return layout;
  },

  readUnsignable: readStructure,

  placeholderBinding: placeholderDataHash,
  planEmbedding,
};

/** Reads a file, whether a manifest would move its media or not. */
async function readStructure(source: ByteSource, signal: AbortSignal): Promise<RiffLayout> {
  const { form, ...sizes } = await readRiffHeader(source, signal);
  const riffChunks = await readChunks(source, { ...sizes, mayMove: form === WAVE }, signal);
  for (const chunkId of form.requiredChunkIds) {
    if (!riffChunks.chunks.some(({ id }) => id === chunkId)) {
      throw new AppError('RIFF_CHUNK_MISSING', { name: source.name, chunkId });
    }
  }
  const streamCount = form === AVI ? await countStreams(source, riffChunks, signal) : 0;
  return {
    ...riffChunks,
    form,
    name: source.name,
    sizeBytes: source.sizeBytes,
    mediaType: form.mediaType,
    extensions: form.extensions,
    hasVideo: form.hasVideo,
    manifest: payloadOf(riffChunks.chunks.find(({ id }) => id === MANIFEST_CHUNK_ID)),
    elements: elementsOf(riffChunks),
    ...(form === AVI && {
      holdsMedia: (bytes, offset) => holdsMedia(bytes, source.sizeBytes - offset, streamCount),
      leadsInto: (range, file, stop) => indexLeadsInto(file, riffChunks.chunks, range, stop),
    }),
    xmp: payloadOf(riffChunks.chunks.find(({ id }) => XMP_CHUNK_IDS.includes(id))),
  };
}

/** Properties of a file that precede its chunks. */
interface RiffHeader {
  readonly form: RiffForm;
  readonly riffSizeBytes: number | null;
  readonly wide: WideSizes | null;
}

async function readRiffHeader(source: ByteSource, signal: AbortSignal): Promise<RiffHeader> {
  const header = await readRange(source, 0, RIFF_HEADER_SIZE_BYTES, signal);
  const signature = header.toString('latin1', 0, 4);
  const form = riffFormOf(header.toString('latin1', 8));
  assert(form !== undefined, 'the header was recognised');
  if (form === WAVE) requireSizeOfRiff(source, signature);
  const wide = isWave64(signature) ? await readWideSizes(source, signature, signal) : null;
  const sizeBytes = header.readUInt32LE(4);
  if (sizeBytes !== 0 && sizeBytes !== SIZE_UNKNOWN) return { form, riffSizeBytes: sizeBytes, wide };
  if (form === WAVE) return { form, riffSizeBytes: wide?.riffSizeBytes || null, wide };
  throw new AppError('RIFF_SIZE_UNKNOWN', { name: source.name, chunkId: 'RIFF', offset: 0, sizeBytes });
}

/**
 * Throws `RIFF_64_BIT` or `RIFF_FILE_TOO_LARGE` for a file of more than 4 GiB: its 32-bit sizes have wrapped around, so
 * they may end in the middle of the sound.
 */
function requireSizeOfRiff({ name, sizeBytes }: ByteSource, signature: string): void {
  if (sizeBytes - CHUNK_HEADER_SIZE_BYTES <= MAX_RIFF_SIZE_BYTES) return;
  if (isWave64(signature)) throw new AppError('RIFF_64_BIT', { name, signature, sizeBytes });
  throw new AppError('RIFF_FILE_TOO_LARGE', { name, sizeBytes });
}

/**
 * Throws `AVI_MEDIA_WOULD_MOVE` where media stands behind an old manifest or the end of the RIFF chunk. Indexes of AVI
 * (`idx1`, and `indx` of OpenDML) store offsets from the start of the file, which are not adjusted.
 */
async function requireUnmovedMedia(source: ByteSource, riffChunks: RiffChunks, signal: AbortSignal): Promise<void> {
  const { chunks, riffEnd } = riffChunks;
  const lastList = chunks.findLast(({ id }) => id === 'LIST')?.offset ?? 0;
  const manifest = chunks.find(({ id }) => id === MANIFEST_CHUNK_ID);
  if (manifest !== undefined && manifest.offset < lastList) {
    throw new AppError('AVI_MEDIA_WOULD_MOVE', { name: source.name, offset: lastList });
  }
  if (riffEnd + CHUNK_HEADER_SIZE_BYTES > source.sizeBytes) return;
  const next = await readRange(source, riffEnd, CHUNK_HEADER_SIZE_BYTES, signal);
  if (next.toString('latin1', 0, 4) === 'RIFF') {
    throw new AppError('AVI_MEDIA_WOULD_MOVE', { name: source.name, offset: riffEnd });
  }
}

function payloadOf(chunk: RiffChunk | undefined): MediaLayout['manifest'] {
  return chunk === undefined ? null : { offset: chunk.offset + CHUNK_HEADER_SIZE_BYTES, length: chunk.sizeBytes };
}

function elementsOf({ chunks, chunksEnd }: RiffChunks): readonly ManifestElement[] {
  const elements = chunks
    .filter(({ id }) => id === MANIFEST_CHUNK_ID)
    .map((chunk) => {
      const { offset } = chunk;
      const length = Math.min(paddedEndOf(chunk), chunksEnd) - offset;
      const content = { offset: offset + CHUNK_HEADER_SIZE_BYTES, length: length - CHUNK_HEADER_SIZE_BYTES };
      return { offset, length, content };
    });
  return onlyReadableAlone(elements);
}

/** Headers of streams take a few hundred bytes each. */
const MAX_SEARCHED_HEADER_BYTES = 1024 * 1024;
const MAX_STREAMS = 100;

/** Counts the streams that the first list describes, the headers of an AVI; the most that there can be where it is too long. */
async function countStreams(source: ByteSource, { chunks }: RiffChunks, signal: AbortSignal): Promise<number> {
  const list = chunks.find(({ id }) => id === 'LIST');
  if (list === undefined || list.sizeBytes > MAX_SEARCHED_HEADER_BYTES) return MAX_STREAMS;
  const headers = await readRange(source, list.offset, endOf(list) - list.offset, signal);
  return headers.toString('latin1').split('strh').length - 1;
}

/** Id of a chunk that players take for media in AVI, wherever they search for one: the number of its stream, and two letters. */
const MEDIA_CHUNK_ID = /(?=(\d\d)[\0-\x7f]{2})/g;

/**
 * Tells whether a player that searches bytes for chunks of media, as ffmpeg does behind the last `movi` list, finds one
 * of the file's streams that fits into the `availableBytes` from there to the end of the file.
 */
function holdsMedia(part: Uint8Array, availableBytes: number, streamCount: number): boolean {
  const bytes = Buffer.from(part.buffer, part.byteOffset, part.byteLength);
  for (const { index, 1: stream } of bytes.toString('latin1').matchAll(MEDIA_CHUNK_ID)) {
    if (Number(stream) >= streamCount) continue;
    const start = index + CHUNK_HEADER_SIZE_BYTES;
    if (start <= bytes.length && start + bytes.readUInt32LE(start - 4) <= availableBytes) return true;
  }
  return false;
}

function planEmbedding(layout: RiffLayout, manifestSizeBytes: number): EmbeddingPlan {
  const body: Splice[] = [
    ...copiesOfChunks(layout),
    ...(lastKeptLacksPad(layout) ? [insert(PAD)] : []),
    { kind: 'insert', bytes: chunkHeader(MANIFEST_CHUNK_ID, manifestSizeBytes), into: 'none' },
    { kind: 'hole', length: manifestSizeBytes },
    ...(manifestSizeBytes % 2 === 1 ? [insert(PAD)] : []),
    ...copyOf(layout.chunksEnd, layout.riffEnd),
  ];
  const afterRiff = copyOf(layout.riffEnd, layout.sizeBytes);
  const splices = [insert(riffHeader(layout, body)), ...body, ...afterRiff];
  // The hash excludes the chunk's header together with the manifest, but not the pad byte.
  return planDataHash(splices, CHUNK_HEADER_SIZE_BYTES);
}

/** Returns every chunk but manifests, as few copies as possible, with missing pad bytes and corrected headers. */
function copiesOfChunks({ chunks, chunksEnd }: RiffLayout): Splice[] {
  const copies: Splice[] = [];
  let runStart = RIFF_HEADER_SIZE_BYTES;
  for (const chunk of chunks) {
    const isManifest = chunk.id === MANIFEST_CHUNK_ID;
    if (isManifest || chunk.isRestated) copies.push(...copyOf(runStart, chunk.offset));
    if (isManifest) {
      runStart = Math.min(paddedEndOf(chunk), chunksEnd);
      continue;
    }
    if (chunk.isRestated) {
      const start = restatedStart(chunk);
      copies.push(insert(start));
      runStart = chunk.offset + start.length;
    }
    if (chunk.isUnpadded) {
      copies.push(...copyOf(runStart, endOf(chunk)), insert(PAD));
      runStart = endOf(chunk);
    }
  }
  return [...copies, ...copyOf(runStart, chunksEnd)];
}

/** Returns the header of a restated chunk, with the number of samples of `fact`. */
function restatedStart({ id, sizeBytes, sampleCount }: RiffChunk): Buffer {
  const header = chunkHeader(id, sizeBytes);
  if (sampleCount === undefined) return header;
  const count = Buffer.alloc(4);
  count.writeUInt32LE(sampleCount);
  return Buffer.concat([header, count]);
}

function lastKeptLacksPad({ chunks, lacksPad }: RiffLayout): boolean {
  return lacksPad && chunks.at(-1)?.id !== MANIFEST_CHUNK_ID;
}

function riffHeader({ name, form }: RiffLayout, body: readonly Splice[]): Buffer {
  let sizeBytes = 4; // form type
  for (const splice of body) sizeBytes += outputLengthOf(splice);
  if (sizeBytes > MAX_RIFF_SIZE_BYTES) {
    throw new AppError('RIFF_TOO_LARGE', { name, sizeBytes, maxSizeBytes: MAX_RIFF_SIZE_BYTES });
  }
  return Buffer.concat([chunkHeader('RIFF', sizeBytes), Buffer.from(form.type, 'latin1')]);
}

function chunkHeader(id: string, sizeBytes: number): Buffer {
  const header = Buffer.alloc(CHUNK_HEADER_SIZE_BYTES);
  header.write(id, 'latin1');
  header.writeUInt32LE(sizeBytes, 4);
  return header;
}

function copyOf(start: number, end: number): Splice[] {
  return end > start ? [{ kind: 'copy', offset: start, length: end - start, into: 'flat' }] : [];
}

function insert(bytes: Uint8Array): Splice {
  return { kind: 'insert', bytes, into: 'flat' };
}
