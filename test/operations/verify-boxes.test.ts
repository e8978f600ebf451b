import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { crc32 } from 'node:zlib';
import type { Verification } from '#contract/verification.ts';
import type { HardBinding } from '#formats/hard-binding.ts';
import { makeManifest } from '../support/manifests/make-manifest.ts';
import { makeMedia } from '../support/media/make-media.ts';
import { box, u32 } from '../support/media/movie-bytes.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { boxSegment, PICTURES } from '../support/verification/signed-pictures.ts';
import { verifyInput } from '../support/verification/verify-input.ts';

// Pictures whose parts are hashed one by one (`c2pa.hash.boxes`, C2PA 2.2 §18.6). Readers do not look at what stands behind them.

const folder = temporaryFolder();
let count = 0;

async function verdict(name: string, ...parts: readonly Uint8Array[]): Promise<Verification> {
  const home = writeFiles(join(folder, `case-${count++}`), { [name]: Buffer.concat(parts) });
  return (await verifyInput({ type: 'local_file_path', path: join(home, name) }, home)).verification;
}

/** A part of a picture that has an entry of its own in the list of hashes. */
interface Part {
  readonly name: string;
  readonly bytes: Buffer;
}

function pngChunk(type: string, data: Uint8Array): Buffer {
  const content = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  return Buffer.concat([u32(data.length), content, u32(crc32(content))]);
}

function partsOfPng(bytes: Buffer): Part[] {
  const parts = [{ name: 'PNGh', bytes: bytes.subarray(0, 8) }];
  for (let at = 8; at < bytes.length; ) {
    const end = at + 12 + bytes.readUInt32BE(at);
    parts.push({ name: bytes.toString('latin1', at + 4, at + 8), bytes: bytes.subarray(at, end) });
    at = end;
  }
  return parts;
}

const SEGMENTS: Readonly<Record<number, string>> = { 224: 'APP0', 254: 'COM', 219: 'DQT', 196: 'DHT', 192: 'SOF0' };

function partsOfJpeg(bytes: Buffer): Part[] {
  const parts = [{ name: 'SOI', bytes: bytes.subarray(0, 2) }];
  for (let at = 2; ; ) {
    const marker = bytes.readUInt8(at + 1);
    const end = at + 2 + bytes.readUInt16BE(at + 2);
    const name = SEGMENTS[marker];
    if (name === undefined) {
      assert.equal(marker, 0xda);
      return [...parts, { name: 'SOS', bytes: bytes.subarray(at, -2) }, { name: 'EOI', bytes: bytes.subarray(-2) }];
    }
    parts.push({ name, bytes: bytes.subarray(at, end) });
    at = end;
  }
}

/** Ways of taking a picture apart, with the number of parts before the manifest, and of wrapping a manifest. */
const FORMATS = {
  'a.png': { take: partsOfPng, before: 2, wrap: (store: Buffer) => pngChunk('caBX', store) },
  'a.jpg': { take: partsOfJpeg, before: 1, wrap: (store: Buffer) => boxSegment(store, 1) },
} as const;

/** Returns the entry of parts; `ofClaim` is an algorithm that the claim alone states. */
function hashOf(parts: readonly Part[], ofClaim?: string) {
  const digest = createHash(ofClaim ?? 'sha256').update(Buffer.concat(parts.map(({ bytes }) => bytes)));
  const stated = ofClaim === undefined && { alg: 'sha256' };
  return { names: parts.map(({ name }) => name), ...stated, hash: [...digest.digest()], pad: [] };
}

/** Makes a picture and signs it with hashes of its parts. */
async function signed(name: keyof typeof FORMATS, form: 'each' | 'all') {
  const [, args] = PICTURES[name] as readonly [string, string];
  makeMedia(folder, [...`-f lavfi -i testsrc2=s=64x48 -frames:v 1 ${args}`.trim().split(' '), name]);
  const { take, before, wrap } = FORMATS[name];
  return await signedParts(take(readFileSync(join(folder, name))), before, wrap, form);
}

/** Signs a picture with one hash for each of its parts, or one for all before the manifest and one for all behind it. */
async function signedParts(
  parts: readonly Part[],
  countBefore: number,
  wrap: (store: Buffer) => Buffer,
  form: 'each' | 'all',
  excluded: readonly boolean[] = [],
  others: readonly HardBinding[] = [],
  ofClaim?: string,
) {
  const [before, behind] = [parts.slice(0, countBefore), parts.slice(countBefore)];
  const grouped = (group: Part[]) =>
    form === 'all'
      ? [hashOf(group, ofClaim)]
      : group.map((part) => ({ ...hashOf([part], ofClaim), excluded: excluded[parts.indexOf(part)] === true }));
  const own = { names: ['C2PA'], alg: 'sha256', hash: [0], pad: [] };
  const binding = { label: 'c2pa.hash.boxes', data: { boxes: [...grouped(before), own, ...grouped(behind)] } };
  const element = wrap(
    Buffer.from(await makeManifest(binding as never, undefined, undefined, undefined, others, ofClaim)),
  );
  const bytesOf = (group: Part[]) => Buffer.concat(group.map(({ bytes }) => bytes));
  return { before: bytesOf(before), element, behind: bytesOf(behind) };
}

const NOT_THERE = 'The manifest is not valid. The file has a part that was not there when it was signed.';

for (const name of Object.keys(FORMATS) as (keyof typeof FORMATS)[]) {
  for (const form of ['each', 'all'] as const) {
    describe(`a picture with a hash of ${form} of its parts (${name})`, async () => {
      const { before, element, behind } = await signed(name, form);

      test('is unchanged', async () => {
        const { state, summary } = await verdict(name, before, element, behind);
        assert.deepEqual([state, summary.split('.')[0]], ['valid', 'Unchanged since signing']);
      });

      test('is invalid with bytes, or a part of its kind, behind what was hashed', async () => {
        for (const more of [Buffer.from('anything'), pngChunk('tEXt', Buffer.from('Comment\0text')), behind]) {
          const { state, summary } = await verdict(name, before, element, behind, more);
          assert.deepEqual([state, summary], ['invalid', NOT_THERE]);
        }
      });

      test('is invalid with a changed byte', async () => {
        const changed = Buffer.from(behind);
        changed.writeUInt8(changed.readUInt8(changed.length - 20) ^ 1, changed.length - 20);
        assert.equal((await verdict(name, before, element, changed)).state, 'invalid');
      });

      test('is invalid with other bytes in the element of its manifest', async () => {
        const { wrap } = FORMATS[name];
        const storeAt = name === 'a.png' ? 8 : 12;
        const store = element.subarray(storeAt, storeAt + element.readUInt32BE(storeAt));
        const other = wrap(Buffer.concat([store, Buffer.from('other bytes')]));
        assert.equal((await verdict(name, before, other, behind)).state, 'invalid');
      });
    });
  }
}

const named = (name: string, bytes: string): Part => ({ name, bytes: Buffer.from(bytes, 'hex') });

test('a picture whose claim alone states the algorithm is unchanged, and invalid with another part', async () => {
  for (const ofClaim of ['sha384', 'sha512']) {
    const parts = partsOfPng(readFileSync(join(folder, 'a.png')));
    const { before, element, behind } = await signedParts(parts, 2, FORMATS['a.png'].wrap, 'each', [], [], ofClaim);
    const { state, summary } = await verdict('a.png', before, element, behind);
    assert.deepEqual([state, summary.split('.')[0]], ['valid', 'Unchanged since signing']);
    assert.equal((await verdict('a.png', before, element, behind, Buffer.from('anything'))).summary, NOT_THERE);
  }
});

test('a picture in JPEG XL with hashes of its boxes is unchanged, and invalid with another box', async () => {
  const boxes = [
    { name: 'JXL ', bytes: box('JXL ', Buffer.from('0d0a870a', 'hex')) },
    { name: 'ftyp', bytes: box('ftyp', Buffer.from('jxl \0\0\0\0jxl ', 'latin1')) },
    { name: 'jxlc', bytes: box('jxlc', Buffer.from('ff0a7f00884b', 'hex')) },
  ];
  const { before, element, behind } = await signedParts(boxes, 2, (store) => store, 'each');
  const { state, summary } = await verdict('a.jxl', before, element, behind);
  assert.deepEqual([state, summary.split('.')[0]], ['valid', 'Unchanged since signing']);
  assert.equal((await verdict('a.jxl', before, element, behind, box('jbrd', Buffer.alloc(9)))).summary, NOT_THERE);
});

test('a picture in GIF with hashes of its blocks is unchanged, and invalid with another block', async () => {
  const blocks = [
    named('GIF89a', '474946383961'),
    named('LSD', '01000100800000000000ffffff'),
    named('2C', '2c000000000100010000'),
    named('TBID', '0202440100'),
    named('3B', '3b'),
  ];
  const wrap = (store: Buffer) => {
    const parts = Array.from({ length: Math.ceil(store.length / 255) }, (_, at) =>
      store.subarray(at * 255, at * 255 + 255),
    );
    const subBlocks = parts.flatMap((part) => [Buffer.from([part.length]), part]);
    return Buffer.concat([Buffer.from('\x21\xff\x0bC2PA_GIF\x01\0\0', 'latin1'), ...subBlocks, Buffer.alloc(1)]);
  };
  const { before, element, behind } = await signedParts(blocks, 2, wrap, 'each');
  const { state, summary } = await verdict('a.gif', before, element, behind);
  assert.deepEqual([state, summary.split('.')[0]], ['valid', 'Unchanged since signing']);
  for (const more of ['21fe024142003b', '00'])
    assert.equal((await verdict('a.gif', before, element, behind, Buffer.from(more, 'hex'))).state, 'invalid');
});

test('a picture whose list has more parts than there are is invalid', async () => {
  for (const [name, parts] of [
    ['a.png', partsOfPng(readFileSync(join(folder, 'a.png')))],
    ['a.jpg', partsOfJpeg(readFileSync(join(folder, 'a.jpg')))],
  ] as const) {
    const more = [...parts, { name: 'IEND', bytes: Buffer.alloc(9) }];
    const { before, element, behind } = await signedParts(more, FORMATS[name].before, FORMATS[name].wrap, 'each');
    assert.equal((await verdict(name, before, element, behind.subarray(0, -9))).state, 'invalid');
  }
});

test('of a picture with a part whose hash does not count it is said that not all is covered', async () => {
  const parts = partsOfPng(readFileSync(join(folder, 'a.png')));
  const excluded = parts.map(({ name }) => name === 'IDAT');
  const { before, element, behind } = await signedParts(parts, 2, FORMATS['a.png'].wrap, 'each', excluded);
  const { state, summary } = await verdict('a.png', before, element, behind);
  assert.equal(state, 'valid');
  assert.match(
    summary,
    /^Unchanged since signing as far as the signature covers it: it leaves out parts of the media\./,
  );
});

test('of a picture with others behind it, which hashes of their own bind, it is said that not all is covered', async () => {
  const picture = readFileSync(join(folder, 'a.jpg'));
  const hash = [...createHash('sha256').update(picture).digest()];
  const part = { label: 'c2pa.hash.data.part', data: { alg: 'sha256', name: 'second', hash, pad: [] } };
  const parts = ['c2pa.hash.boxes', part.label].map((label, index) => ({
    location: { byteOffset: index * picture.length, length: picture.length },
    hashAssertion: { url: `self#jumbf=c2pa.assertions/${label}`, hash },
  }));
  const others = [part, { label: 'c2pa.hash.multi-asset', data: { parts } }] as unknown as HardBinding[];
  const { before, element, behind } = await signedParts(
    partsOfJpeg(picture),
    1,
    FORMATS['a.jpg'].wrap,
    'each',
    [],
    others,
  );
  for (const second of [picture, Buffer.from('anything')]) {
    const { state, summary } = await verdict('a.jpg', before, element, behind, second);
    assert.equal(state, 'valid');
    assert.match(
      summary,
      /^Unchanged since signing as far as the signature covers it: it leaves out parts of the media\./,
    );
  }
});
