import assert from 'node:assert/strict';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { outputLengthOf, type Splice } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import { placeholderDataHash, planDataHash } from '../data-hash.ts';
import type { EmbeddingPlan, FormatHandler, MediaLayout } from '../format-handler.ts';
import {
  CHUNK_HEADER_SIZE_BYTES,
  endOf,
  LARGEST_RIFF_SIZE_BYTES,
  paddedEndOf,
  RIFF_HEADER_SIZE_BYTES,
  type RiffChunk,
  type RiffChunks,
  readChunks,
  SIZE_UNKNOWN,
} from './riff-chunks.ts';
import { AVI, type RiffForm, riffFormOf, WAVE } from './riff-forms.ts';
import { isWave64, readWideSizes } from './wave-64.ts';

const MANIFEST_CHUNK_ID = 'C2PA';
/** Adobe writes `_PMX`; readers of C2PA look into `XMP ` as WebP has it. */
const XMP_CHUNK_IDS = ['_PMX', 'XMP '];
const PAD = new Uint8Array(1);

/** A RIFF file as the handler needs it. */
export interface RiffLayout extends MediaLayout, RiffChunks {
  readonly form: RiffForm;
  readonly name: string;
  readonly sizeBytes: number;
}

/**
 * WAVE audio and AVI video in a RIFF container; 64-bit WAVE (RF64, BW64) becomes plain WAVE. The manifest is a chunk `C2PA`,
 * the last one inside the RIFF chunk (C2PA 2.2, annex A.3), so that nothing in front of it moves; bytes after the RIFF chunk
 * stay there.
 */
export const riff: FormatHandler<RiffLayout> = {
  name: 'riff',

  matches(head) {
    if (head.length < RIFF_HEADER_SIZE_BYTES) return false;
    const text = Buffer.from(head.buffer, head.byteOffset, RIFF_HEADER_SIZE_BYTES).toString('latin1');
    const form = riffFormOf(text.slice(8));
    return isWave64(text.slice(0, 4)) ? form === WAVE : text.startsWith('RIFF') && form !== undefined;
  },

  async readLayout(source, signal) {
    const { form, ...sizes } = await readRiffHeader(source, signal);
    const riffChunks = await readChunks(source, { ...sizes, mayMove: form === WAVE }, signal);
    for (const chunkId of form.requiredChunkIds) {
      if (!riffChunks.chunks.some(({ id }) => id === chunkId)) {
        throw new AppError('RIFF_CHUNK_MISSING', { name: source.name, chunkId });
      }
    }
    if (form === AVI) await requireMediaToStay(source, riffChunks, signal);
    return {
      ...riffChunks,
      form,
      name: source.name,
      sizeBytes: source.sizeBytes,
      mediaType: form.mediaType,
      extensions: form.extensions,
      hasVideo: form.hasVideo,
      manifest: payloadOf(riffChunks.chunks.find(({ id }) => id === MANIFEST_CHUNK_ID)),
      xmp: payloadOf(riffChunks.chunks.find(({ id }) => XMP_CHUNK_IDS.includes(id))),
    };
  },

  placeholderBinding: placeholderDataHash,
  planEmbedding,
};

/** What a file says of itself before its chunks. */
interface RiffHeader {
  readonly form: RiffForm;
  readonly riffSizeBytes: number | null;
  readonly wideDataSizeBytes: number | null;
}

async function readRiffHeader(source: ByteSource, signal: AbortSignal): Promise<RiffHeader> {
  const header = await readRange(source, 0, RIFF_HEADER_SIZE_BYTES, signal);
  const signature = header.toString('latin1', 0, 4);
  const form = riffFormOf(header.toString('latin1', 8));
  assert(form !== undefined, 'the header was recognised');
  if (form === WAVE) requireRoomForSizes(source, signature);
  const wide = isWave64(signature) ? await readWideSizes(source, signature, signal) : null;
  const wideDataSizeBytes = wide?.dataSizeBytes ?? null;
  const sizeBytes = header.readUInt32LE(4);
  if (sizeBytes !== 0 && sizeBytes !== SIZE_UNKNOWN) return { form, riffSizeBytes: sizeBytes, wideDataSizeBytes };
  if (form === WAVE) return { form, riffSizeBytes: wide?.riffSizeBytes || null, wideDataSizeBytes };
  throw new AppError('RIFF_SIZE_UNKNOWN', { name: source.name, chunkId: 'RIFF', offset: 0, sizeBytes });
}

/** In a file larger than its sizes can say they have started again from 0: what they end may be in the middle of its sound. */
function requireRoomForSizes({ name, sizeBytes }: ByteSource, signature: string): void {
  if (sizeBytes - CHUNK_HEADER_SIZE_BYTES <= LARGEST_RIFF_SIZE_BYTES) return;
  if (isWave64(signature)) throw new AppError('RIFF_64_BIT', { name, signature, sizeBytes });
  throw new AppError('RIFF_FILE_TOO_LARGE', { name, sizeBytes });
}

/**
 * Indexes of an AVI file (`idx1`, and `indx` of OpenDML) hold offsets from the start of the file, which are not adjusted
 * here: nothing with media may stand behind the place of the manifest, nor behind one that goes away.
 */
async function requireMediaToStay(source: ByteSource, riffChunks: RiffChunks, signal: AbortSignal): Promise<void> {
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
  // The chunk's header is left out of the hash together with the manifest, its pad byte is not.
  return planDataHash(splices, CHUNK_HEADER_SIZE_BYTES);
}

/** Every chunk but manifests, in runs as long as can be, with the pad bytes and the headers that they lack. */
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
      copies.push(insert(chunkHeader(chunk.id, chunk.sizeBytes)));
      runStart = chunk.offset + CHUNK_HEADER_SIZE_BYTES;
    }
    if (chunk.isUnpadded) {
      copies.push(...copyOf(runStart, endOf(chunk)), insert(PAD));
      runStart = endOf(chunk);
    }
  }
  return [...copies, ...copyOf(runStart, chunksEnd)];
}

function lastKeptLacksPad({ chunks, lacksPad }: RiffLayout): boolean {
  return lacksPad && chunks.at(-1)?.id !== MANIFEST_CHUNK_ID;
}

function riffHeader({ name, form }: RiffLayout, body: readonly Splice[]): Buffer {
  let sizeBytes = 4; // the form type
  for (const splice of body) sizeBytes += outputLengthOf(splice);
  if (sizeBytes > LARGEST_RIFF_SIZE_BYTES) {
    throw new AppError('RIFF_TOO_LARGE', { name, sizeBytes, maxSizeBytes: LARGEST_RIFF_SIZE_BYTES });
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
