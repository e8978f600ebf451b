import assert from 'node:assert/strict';
import * as cborg from 'cborg';
import { describePart, type MediaPart, type Rendition } from '#publications/media-part.ts';
import type { PublicationPatterns } from '#publications/publication.ts';
import { readPublication } from '#publications/read-publication.ts';
import { readNatively } from '../judges/file-judges.ts';
import { problemsOf } from '../judges/publication-judges.ts';
import { folderOf } from './make-folder.ts';

const { signal } = new AbortController();
const C2PA_UUID = Buffer.from('d8fec3d61b0e483c92975828877ec481', 'hex');
/** The size of the fields of a C2PA box in front of its manifest store. */
const C2PA_BOX_FIELDS_BYTES = 45;
/** Byte ranges become init segments and fragments by these names. */
const LAID_OUT_ANEW: PublicationPatterns = { playlist: '*.{m3u8,mpd}', init: 'init.mp4', frag: '*.m4s' };
/** A playlist's own statement of its bit rate, the only thing that signing may change in it. */
const RATE = /((?:AVERAGE-)?BANDWIDTH=)\d+|(\bbandwidth=")\d+/g;

export type Files = Readonly<Record<string, Uint8Array>>;

/** A top-level box as it lies in a file. */
interface PlainBox {
  readonly type: string;
  readonly bytes: Buffer;
}

/** The top-level boxes of a file, read by nothing but their sizes. */
export function topBoxesOf(file: Uint8Array): PlainBox[] {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.length);
  const boxes: PlainBox[] = [];
  for (let at = 0; at + 8 <= bytes.length; ) {
    const compact = bytes.readUInt32BE(at);
    const size = compact === 1 ? Number(bytes.readBigUInt64BE(at + 8)) : compact === 0 ? bytes.length - at : compact;
    boxes.push({ type: bytes.toString('latin1', at + 4, at + 8), bytes: bytes.subarray(at, at + size) });
    at += size;
  }
  return boxes;
}

/** The C2PA boxes of a file, by their purpose: `manifest` or `merkle`. */
export function c2paBoxesOf(file: Uint8Array, purpose: 'manifest' | 'merkle'): PlainBox[] {
  return topBoxesOf(file).filter(
    ({ type, bytes }) =>
      type === 'uuid' &&
      bytes.subarray(8, 24).equals(C2PA_UUID) &&
      bytes.toString('latin1', 28, 28 + purpose.length + 1) === `${purpose}\0`,
  );
}

/** The place in its rendition that a fragment's Merkle box says it has (C2PA 2.2, §A.5.4). */
export function locationOf(fragment: Uint8Array): number {
  return merkleBoxIn(fragment).location;
}

/** The content of a fragment's only Merkle box. */
export function merkleBoxIn(fragment: Uint8Array): { location: number; hashes?: readonly Uint8Array[] | null } {
  const [box] = c2paBoxesOf(fragment, 'merkle');
  assert.ok(box !== undefined, 'the fragment has a Merkle box');
  return cborg.decode(box.bytes.subarray(28 + 'merkle\0'.length));
}

/** The renditions of a publication in memory. */
export async function renditionsOf(files: Files, patterns: PublicationPatterns): Promise<readonly Rendition[]> {
  return (await readPublication(folderOf(files), patterns, signal)).renditions;
}

/** Bytes of a part. */
export function bytesOf(files: Files, { path, range }: MediaPart): Uint8Array {
  const bytes = files[path];
  assert.ok(bytes !== undefined, `${path} is there`);
  return range === null ? bytes : bytes.subarray(range.offset, range.offset + range.length);
}

/**
 * Holds a signed publication against its source: the same renditions with the same media in the same order, one manifest
 * in every init segment, every fragment valid to the reference reader, and all else as it was.
 */
export async function assertSignedPublication(
  source: Files,
  sourcePatterns: PublicationPatterns,
  output: Files,
): Promise<readonly Rendition[]> {
  const before = await renditionsOf(source, sourcePatterns);
  const after = await renditionsOf(output, isLaidOutAnew(before) ? LAID_OUT_ANEW : sourcePatterns);
  assertSameMedia(source, before, output, after);
  assertOneManifest(output, after);
  await assertFragmentsValid(output, after);
  assertEverythingElse(source, before, output, after);
  return after;
}

function assertSameMedia(
  source: Files,
  before: readonly Rendition[],
  output: Files,
  after: readonly Rendition[],
): void {
  const mediaOf = (files: Files, renditions: readonly Rendition[]): string[] =>
    renditions
      .map(({ fragments }) =>
        fragments
          .flatMap((part) => topBoxesOf(bytesOf(files, part)))
          .filter(({ type }) => type === 'mdat')
          .map(({ bytes }) => bytes.toString('latin1'))
          .join(''),
      )
      .sort();
  assert.equal(after.length, before.length, 'as many renditions');
  assert.ok(
    mediaOf(source, before).every((media, index) => media === mediaOf(output, after)[index]),
    'every rendition has its media, in order',
  );
}

function assertOneManifest(files: Files, renditions: readonly Rendition[]): void {
  const manifests = renditions.flatMap(({ init }) => c2paBoxesOf(bytesOf(files, init), 'manifest'));
  assert.equal(manifests.length, renditions.length, 'one manifest in every init segment');
  for (const { bytes } of manifests) {
    assert.ok(bytes.equals(manifests[0]?.bytes as Buffer), 'the same in all');
    assert.equal(bytes.readUInt32BE(C2PA_BOX_FIELDS_BYTES), bytes.length - C2PA_BOX_FIELDS_BYTES, 'nothing follows it');
  }
}

/** Codes that the native reader may find in an init segment: it checks everything but fragments. */
const WITHOUT_FRAGMENTS: readonly string[] = ['signingCredential.untrusted', 'assertion.bmffHash.mismatch'];

/**
 * Every fragment of a publication is valid to the WASM reader, and has one Merkle box, right before its moof; every init
 * segment is to the native reader, as far as it reads one.
 */
export async function assertFragmentsValid(files: Files, renditions: readonly Rendition[]): Promise<void> {
  for (const { init, fragments } of renditions) {
    const { statuses } = await readNatively(bytesOf(files, init), 'video/mp4');
    assert.deepEqual(
      statuses.filter((code) => !WITHOUT_FRAGMENTS.includes(code)),
      [],
      describePart(init),
    );
    for (const part of fragments) {
      const fragment = bytesOf(files, part);
      const types = topBoxesOf(fragment).map(({ type }) => type);
      assert.equal(c2paBoxesOf(fragment, 'merkle').length, 1, describePart(part));
      assert.equal(types[types.indexOf('moof') - 1], 'uuid', describePart(part));
      assert.deepEqual(await problemsOf(bytesOf(files, init), fragment), [], describePart(part));
    }
  }
}

function assertEverythingElse(
  source: Files,
  before: readonly Rendition[],
  output: Files,
  after: readonly Rendition[],
): void {
  const media = new Set([...before, ...after].flatMap(({ init, fragments }) => [init, ...fragments].map(pathOf)));
  for (const [path, bytes] of Object.entries(source)) {
    if (media.has(path)) continue;
    const carried = output[path];
    assert.ok(carried !== undefined, `${path} was carried through`);
    if (!/\.(m3u8|mpd)$/.test(path)) assert.ok(Buffer.from(bytes).equals(carried), `${path} is unchanged`);
    else if (!isLaidOutAnew(before)) assertSamePlaylist(path, source, output);
  }
  const known = new Set([
    ...Object.keys(source),
    ...after.flatMap(({ init, fragments }) => [init, ...fragments].map(pathOf)),
  ]);
  assert.deepEqual(
    Object.keys(output).filter((path) => !known.has(path)),
    [],
    'nothing else is there',
  );
}

function pathOf({ path }: MediaPart): string {
  return path;
}

/** Byte ranges were given files of their own. */
function isLaidOutAnew(before: readonly Rendition[]): boolean {
  return before.some(({ init, fragments }) => [init, ...fragments].some(({ range }) => range !== null));
}

/** A playlist is as it was but for bit rates, and for where byte ranges of I-frames begin: the same bytes lie there. */
function assertSamePlaylist(path: string, source: Files, output: Files): void {
  const [before, after] = [source, output].map((files) => withoutRates(files[path] as Uint8Array)) as [string, string];
  const range = /(?<=#EXT-X-BYTERANGE:)(\d+)@(\d+)\n(.*)/g;
  assert.equal(after.replace(range, '$1 $3'), before.replace(range, '$1 $3'), path);
  const above = path.slice(0, path.lastIndexOf('/') + 1);
  const [rangesBefore, rangesAfter] = [before.matchAll(range), after.matchAll(range)].map((found) => [...found]);
  for (const [index, [, length, offset, name]] of (rangesBefore ?? []).entries()) {
    const moved = Number(rangesAfter?.[index]?.[2]);
    const bytes = source[above + name]?.subarray(Number(offset), Number(offset) + Number(length));
    const same = output[above + name]?.subarray(moved, moved + Number(length));
    assert.deepEqual(Buffer.from(same ?? ''), Buffer.from(bytes ?? ''), `${path}: ${name}`);
  }
}

function withoutRates(playlist: Uint8Array): string {
  return Buffer.from(playlist).toString('utf8').replace(RATE, '$1$2');
}
