import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import * as cborg from 'cborg';
import { buildRows, rowLengths } from '#bytes/merkle-tree.ts';
import type { HashAlgorithm } from '#bytes/splice-plan.ts';
import { itemAt } from '#errors/assert.ts';
import { isobmff } from '#formats/formats.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import { localFileOpener } from '#inputs/local/local-file.ts';
import type { Operation, OperationOutcome } from '#operations/operation.ts';
import { signVideo, verify } from '#operations/registry.ts';
import { findLeftOut } from '#operations/verification/left-out.ts';
import { onlyCbor } from '#provenance/jumbf.ts';
import { signBytes } from '../support/judges/file-judges.ts';
import { forgeStore, storedAssertions, withContent } from '../support/manifests/forge-store.ts';
import { defaultIdentity } from '../support/manifests/test-identity.ts';
import { makeMedia } from '../support/media/make-media.ts';
import { box, fullBox, u32 } from '../support/media/movie-bytes.ts';
import { memorySource } from '../support/memory-bytes.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { topBoxesOf } from '../support/publications/signed-publication.ts';
import { runInput } from '../support/run-input.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  c2paBox,
  elementOf,
  filled,
  type SignedFile,
  shortened,
  takeApart,
} from '../support/verification/file-forgeries.ts';
import { verdictOn } from '../support/verification/forged-files.ts';
import { signBySdk } from '../support/verification/signed-updates.ts';

// Media of a single file in blocks that are hashed one by one. Merkle boxes say which block is which, and no hash covers them.

const folder = temporaryFolder();
const never = new AbortController().signal;
/** Bytes of `mdat` before the first block. */
const HEAD_BYTES = 16;

async function stateOf(bytes: Uint8Array): Promise<string> {
  return (await verdictOn('sound.mov', { 'sound.mov': bytes }, folder)).state;
}

/** Makes sound of which players show every byte: a block elsewhere is other sound. */
function sound(seconds: number): Buffer {
  makeMedia(folder, [...`-f lavfi -i sine=r=48000:d=${seconds} -c:a pcm_s16le`.split(' '), 'sound.mov']);
  return readFileSync(join(folder, 'sound.mov'));
}

function mediaOf(bytes: Buffer): Buffer[] {
  return topBoxesOf(bytes)
    .filter(({ type }) => type === 'mdat')
    .map((mdat) => mdat.bytes);
}

/** Returns a file with two blocks of its first media box in the place of each other. */
function exchanged(bytes: Buffer, first: number, second: number, blockBytes: number): Buffer {
  const changed = Buffer.from(bytes);
  const start = bytes.indexOf(itemAt(mediaOf(bytes), 0)) + HEAD_BYTES;
  for (const [from, to] of [
    [first, second],
    [second, first],
  ] as const) {
    bytes.copy(changed, start + to * blockBytes, start + from * blockBytes, start + (from + 1) * blockBytes);
  }
  return changed;
}

const swapped = (count: number, first: number, second: number): number[] =>
  Array.from({ length: count }, (_, index) => (index === first ? second : index === second ? first : index));

test('a file without Merkle boxes is invalid with its blocks in another order, and boxes that say so', async () => {
  const blockBytes = 1024 * 1024;
  const bytes = await signBytes(isobmff, sound(200));
  const count = Math.ceil((itemAt(mediaOf(bytes), 0).length - HEAD_BYTES) / blockBytes);
  const boxes = (locations: readonly number[]) =>
    locations.map((location) =>
      c2paBox('merkle', cborg.encode({ uniqueId: 1, localId: 0, location }), Buffer.alloc(0)),
    );
  const forged = exchanged(bytes, 2, 9, blockBytes);
  assert.equal(await stateOf(bytes), 'valid');
  assert.equal(await stateOf(forged), 'invalid');
  assert.equal(await stateOf(Buffer.concat([forged, ...boxes(swapped(count, 2, 9))])), 'invalid');
  const inOrder = boxes(swapped(count, 0, 0));
  assert.equal(await stateOf(Buffer.concat([bytes, ...inOrder])), 'valid');
  assert.equal(await stateOf(Buffer.concat([bytes, ...inOrder.slice(1)])), 'invalid');
});

const BLOCK_KB = 64;

function signInBlocks(bytes: Buffer): Promise<Buffer> {
  return signBySdk(bytes, 'video/quicktime', 'create', { merkle_tree_chunk_size_in_kb: BLOCK_KB });
}

describe('a file of the official SDK with Merkle boxes', async () => {
  const signed = await signInBlocks(sound(8));
  const isMerkle = ({ bytes }: { bytes: Buffer }) => bytes.subarray(0, 64).includes('merkle\0');
  const boxes = topBoxesOf(signed).filter(isMerkle);
  const withBoxes = (bytes: Buffer, order: readonly number[]): Buffer => {
    let next = 0;
    return Buffer.concat(
      topBoxesOf(bytes).map((each) => (isMerkle(each) ? itemAt(boxes, itemAt(order, next++)).bytes : each.bytes)),
    );
  };

  test('is valid, with zeros behind their contents', async () => {
    assert.equal(boxes.length, 12);
    assert.equal(await stateOf(signed), 'valid');
  });

  test('is invalid with other bytes there', async () => {
    const other = Buffer.from(signed);
    const { bytes } = itemAt(boxes, 11);
    assert.equal(bytes.at(-1), 0);
    other.writeUInt8(1, signed.indexOf(bytes) + bytes.length - 1);
    assert.equal(await stateOf(other), 'invalid');
  });

  test('is invalid with blocks in another order, in that of the boxes too', async () => {
    const forged = exchanged(signed, 2, 9, BLOCK_KB * 1024);
    assert.equal(await stateOf(forged), 'invalid');
    assert.equal(await stateOf(withBoxes(forged, swapped(12, 2, 9))), 'invalid');
    assert.equal(await stateOf(withBoxes(signed, swapped(12, 2, 9))), 'invalid');
  });
});

/** Returns sound of one track in two boxes of media of one size. */
function inTwoBoxes(whole = sound(8)): Buffer {
  const [ftyp, ...others] = topBoxesOf(whole);
  const mdat = itemAt(mediaOf(Buffer.concat(others.map(({ bytes }) => bytes))), 0).subarray(8);
  const half = mdat.length / 2;
  const start = (ftyp?.bytes.length ?? 0) + 8;
  const replaced = (bytes: Buffer): Buffer => {
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += bytes.readUInt32BE(at)) {
      const child = bytes.subarray(at, at + bytes.readUInt32BE(at));
      const type = child.toString('latin1', 4, 8);
      if (type === 'stco') parts.push(fullBox('stco', 0, u32(2, start, start + half + 8)));
      else if (type === 'stsc') parts.push(fullBox('stsc', 0, u32(1, 1, half / 2, 1)));
      else parts.push(/trak|mdia|minf|stbl/.test(type) ? box(type, replaced(child.subarray(8))) : child);
    }
    return Buffer.concat(parts);
  };
  const moov = others.find(({ type }) => type === 'moov')?.bytes.subarray(8) ?? Buffer.of();
  const media = [box('mdat', mdat.subarray(0, half)), box('mdat', mdat.subarray(half))];
  return Buffer.concat([ftyp?.bytes ?? Buffer.of(), ...media, box('moov', replaced(moov))]);
}

test('a file with two boxes of media is never valid with one in the place of the other', async () => {
  const signed = await signInBlocks(inTwoBoxes());
  const forged = Buffer.from(signed);
  const [first, second] = mediaOf(signed).map((bytes) => ({ bytes, at: signed.indexOf(bytes) + HEAD_BYTES }));
  assert(first !== undefined && second !== undefined);
  second.bytes.copy(forged, first.at, HEAD_BYTES);
  first.bytes.copy(forged, second.at, HEAD_BYTES);
  // The native reader pairs boxes and trees by chance.
  for (let count = 0; count < 12; count += 1) assert.equal(await stateOf(forged), 'invalid');
});

/** Returns a manifest whose claim alone states an algorithm, by which its trees are made anew. */
async function withTreesOf(algorithm: HashAlgorithm, { bytes, store }: SignedFile): Promise<Buffer> {
  const assertions = storedAssertions(store).map(({ label, box }) => {
    if (!label.startsWith('c2pa.hash.bmff')) return { label, box };
    const { alg: _, merkle, ...rest } = cborg.decode(onlyCbor(box) ?? Buffer.of()) as Record<string, unknown>;
    const maps = (merkle as { alg?: string }[]).map(({ alg: __, ...map }, index) => {
      const media = itemAt(mediaOf(bytes), index).subarray(HEAD_BYTES);
      const count = Math.ceil(media.length / (BLOCK_KB * 1024));
      const blocks = swapped(count, 0, 0).map((at) => media.subarray(at * BLOCK_KB * 1024, (at + 1) * BLOCK_KB * 1024));
      const leaves = blocks.map((block) => hash(algorithm, block, 'buffer'));
      return { ...map, hashes: buildRows(leaves, rowLengths(count).length - 1, algorithm).at(-1) };
    });
    return { label, box: withContent(box, cborg.encode({ ...rest, merkle: maps })) };
  });
  return await forgeStore(store, { assertions, algorithm, signer: defaultIdentity.signer });
}

test('blocks are hashed by the algorithm of the claim where nothing else states one', async () => {
  const file = await takeApart(await signInBlocks(inTwoBoxes()));
  for (const algorithm of ['sha256', 'sha512'] as const) {
    // The official SDK makes SHA-256 alone: the file has no flat hash and no proofs of another algorithm.
    const store = shortened(await withTreesOf(algorithm, file), 1000);
    const content = Buffer.concat([store, Buffer.alloc(file.store.length - store.length)]);
    const source = memorySource(filled(file, elementOf(file, content)));
    const layout = { ...(await isobmff.readLayout(source, never)), merkleBoxes: [] };
    const read = { source, mediaType: 'video/quicktime', layout, picture: null, store, report: {}, isSidecar: false };
    assert.equal(await findLeftOut(read, never), null, algorithm);
  }
});

for (const operation of [verify, signVideo] as readonly Operation<OperationOutcome>[]) {
  test(`heartbeats are sent while several boxes of media are hashed (${operation.name})`, async (t) => {
    // The native reader accepts boxes that are alike, however it pairs them.
    const silence = sound(8);
    const [{ length }] = mediaOf(silence) as [Buffer];
    silence.fill(0, silence.indexOf('mdat') + 4, silence.indexOf('mdat') + length - 4);
    const home = writeFiles(join(folder, operation.name), { 'sound.mov': await signInBlocks(inTwoBoxes(silence)) });
    const openFile = localFileOpener({ roots: undefined, protectedPaths: [] });
    const opener: typeof openFile = async (...asked) => {
      const source = await openFile(...asked);
      const read = source.read.bind(source);
      const readSlowly: typeof read = async (target, ...rest) => {
        await read(target, ...rest);
        if (target.length === BLOCK_KB * 1024) t.mock.timers.tick(60_000);
      };
      return Object.assign(source, { read: readSlowly, pin: async () => true });
    };
    let beats = 0;
    const worker = {
      heartbeat: () => {
        beats += 1;
      },
      services: { inputs: new InputResolver({ local_file_path: opener }, {}) },
    };
    t.mock.timers.enable({ apis: ['setInterval'] });
    await runInput(operation, { input: { type: 'local_file_path', path: join(home, 'sound.mov') } }, home, worker);
    assert.ok(beats >= 10, `${beats}`);
  });
}
