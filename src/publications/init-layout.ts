import { isC2paBox, manifestIn } from './c2pa-boxes.ts';
import { innerBoxes } from './inner-boxes.ts';
import type { ByteRange } from './publication.ts';
import { listTopBoxes, malformed, type PartReader, type TopBox } from './top-boxes.ts';

/** An init segment as it lies in its file. */
export interface InitLayout {
  readonly path: string;
  /** Top-level boxes in order, without those of C2PA. */
  readonly boxes: readonly TopBox[];
  /** `track_ID` of the first track. */
  readonly firstTrackId: number;
  /** The manifest store of an earlier signing, as a byte range of the file. */
  readonly manifest: ByteRange | null;
}

/** A moov of an init segment holds no sample tables; one larger than this is none. */
const MOOV_MAX_BYTES = 16 * 1024 * 1024;

/** Reads the layout of an init segment: a moov, no media. */
export async function readInitLayout(reader: PartReader): Promise<InitLayout> {
  const all = await listTopBoxes(reader);
  const boxes = all.filter((box) => !isC2paBox(box));
  const moov = boxes.find(({ type }) => type === 'moov');
  if (moov === undefined)
    throw malformed(reader, all[0] ?? { type: '', offset: reader.start }, 'an init segment needs a moov');
  const media = boxes.find(({ type }) => type === 'moof' || type === 'mdat');
  if (media !== undefined) {
    throw malformed(
      reader,
      media,
      'an init segment holds no media; name its byte ranges in a playlist, or sign it as a video file',
    );
  }
  const ftyp = boxes.findIndex(({ type }) => type === 'ftyp');
  if (ftyp > 0) throw malformed(reader, boxes[ftyp] as TopBox, 'it must be the first box');
  const manifests = all.filter(isC2paBox).map(manifestIn);
  return {
    path: reader.name,
    boxes,
    firstTrackId: await readFirstTrackId(reader, moov),
    manifest: manifests.find((manifest) => manifest !== null) ?? null,
  };
}

async function readFirstTrackId(reader: PartReader, moov: TopBox): Promise<number> {
  if (moov.sizeBytes > MOOV_MAX_BYTES) throw malformed(reader, moov, `it is larger than ${MOOV_MAX_BYTES} bytes`);
  const bytes = await reader.read(moov.offset, moov.sizeBytes);
  const misfit = (type: string, at: number): never => {
    throw malformed(reader, { type, offset: moov.offset + at }, 'it does not fit into the box around it');
  };
  for (const trak of innerBoxes(bytes, moov.headerSizeBytes, bytes.length, misfit)) {
    if (trak.type !== 'trak') continue;
    for (const tkhd of innerBoxes(bytes, trak.contentStart, trak.end, misfit)) {
      if (tkhd.type !== 'tkhd') continue;
      // Version 1 has 64-bit creation and modification times before the track id.
      const at = tkhd.contentStart + (bytes[tkhd.contentStart] === 1 ? 20 : 12);
      if (at + 4 > tkhd.end) misfit(tkhd.type, tkhd.start);
      return bytes.readUInt32BE(at);
    }
  }
  throw malformed(reader, moov, 'it has no track');
}
