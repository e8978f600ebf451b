import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import * as cborg from 'cborg';
import fc from 'fast-check';
import { executePlan } from '#bytes/execute-plan.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import { readMerkleBox } from '#formats/isobmff-boxes.ts';
import { readFragmentLayout } from '#publications/fragments/fragment-layout.ts';
import { readInitLayout } from '#publications/fragments/init-layout.ts';
import { readerOf } from '#publications/fragments/top-boxes.ts';
import { planFragment, planInit } from '#publications/signing/plan-parts.ts';
import { readBoxExclusion } from '#publications/verification/stored-binding.ts';
import { allDecodedFrames, problemsOf } from '../support/judges/publication-judges.ts';
import { memorySink, memorySource } from '../support/memory-bytes.ts';
import { folderOf } from '../support/publications/make-folder.ts';
import { ffmpeg, makeFilm } from '../support/publications/make-publication.ts';
import { signFolder } from '../support/publications/sign-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { signal } = new AbortController();
const part = { path: 'f.m4s', range: null };

/** A box as hexadecimal or text: `box('moof', box('mfhd', '00000000'))`. */
function box(type: string, ...contents: (string | Buffer)[]): Buffer {
  const content = Buffer.concat(contents.map((each) => (typeof each === 'string' ? Buffer.from(each, 'hex') : each)));
  const header = Buffer.alloc(8);
  header.writeUInt32BE(8 + content.length);
  header.write(type, 4, 'latin1');
  return Buffer.concat([header, content]);
}

function u32(value: number): string {
  return value.toString(16).padStart(8, '0');
}

const mdat = box('mdat', '0102030405060708');
const moof = box('moof', box('mfhd', '0000000000000001'));

async function layoutOf(bytes: Buffer) {
  return await readFragmentLayout(await readerOf(memorySource(bytes, 'f.m4s'), part, signal));
}

/** Returns a fragment with a Merkle box of that size, filled with zeros. */
async function signed(bytes: Buffer, merkleBoxSizeBytes: number): Promise<Buffer> {
  const { plan } = planFragment(await layoutOf(bytes), merkleBoxSizeBytes, new Map());
  const sink = memorySink(outputSizeBytes(plan));
  await executePlan(plan, memorySource(bytes), sink, { signal });
  return sink.bytes;
}

async function reasonOf(reading: Promise<unknown>): Promise<string> {
  try {
    await reading;
    return 'accepted';
  } catch (error) {
    assert.ok(error instanceof AppError, String(error));
    return error.reason;
  }
}

describe('samples of a publication lie in the mdat of their fragment', () => {
  const header = box('tfhd', '00020000', u32(1));
  const runAt = (distance: number, flags = '00000201', sizes = u32(8)) =>
    box('trun', flags, u32(1), u32(distance), ...(flags === '00000201' ? [sizes] : []));
  const fragment = (...inTraf: Buffer[]) => [box('moof', box('traf', header, ...inTraf)), mdat];
  const MOOF_BYTES = 8 + 8 + 16 + 24;

  test('as in this one', async () => {
    const bytes = Buffer.concat(fragment(runAt(MOOF_BYTES + 8)));
    assert.equal((await signed(bytes, 3)).length, bytes.length + 3);
  });

  const sizes = box('saiz', u32(0), '16', u32(2));
  const BOTH_BYTES = MOOF_BYTES + 17 + 20;
  const encryptedAt = (offset: number): Buffer =>
    Buffer.concat(fragment(runAt(BOTH_BYTES + 8), sizes, box('saio', u32(0), u32(1), u32(offset))));

  test('and what tells how they are encrypted in its moof or mdat', async () => {
    for (const offset of [0, BOTH_BYTES - 44]) {
      assert.equal(await reasonOf(signed(encryptedAt(offset), 3)), 'accepted', `${offset}`);
    }
  });

  for (const [why, bytes] of Object.entries({
    'how they are encrypted, behind it': encryptedAt(BOTH_BYTES),
    'behind it': Buffer.concat([...fragment(runAt(MOOF_BYTES + 9)), box('free', '00')]),
    'before it': Buffer.concat(fragment(runAt(0))),
    'in a table that is cut short': Buffer.concat(fragment(runAt(MOOF_BYTES + 8, '00000201', ''))),
    'by a run in another box': Buffer.concat(fragment(box('udta', runAt(MOOF_BYTES + 16)))),
    'by a run beside the moof': Buffer.concat([...fragment(), runAt(0)]),
    'by a run in a box beside the moof': Buffer.concat([...fragment(), box('wave', runAt(0))]),
  })) {
    test(`or else it is refused: ${why}`, async () => {
      assert.equal(await reasonOf(signed(bytes, 3)), 'FRAGMENT_MALFORMED');
    });
  }

  test('of the size that the init segment states', async () => {
    const layout = await layoutOf(Buffer.concat(fragment(runAt(MOOF_BYTES - 4 + 8, '00000001'))));
    planFragment(layout, 3, new Map([[1, 8]]));
    assert.throws(() => planFragment(layout, 3, new Map([[1, 9]])), { reason: 'FRAGMENT_MALFORMED' });
  });

  test('and an init segment has none', async () => {
    const track = (chunks: string) =>
      box('trak', box('tkhd', u32(0), u32(0), u32(0), u32(1)), box('mdia', box('minf', tablesAt(chunks))));
    const tablesAt = (chunks: string) =>
      box(
        'stbl',
        box('stsz', u32(0), u32(4), u32(1)),
        box('stsc', u32(0), u32(1), u32(1), u32(1), u32(1)),
        box('stco', u32(0), chunks),
      );
    const reading = (moov: Buffer) => readerOf(memorySource(moov), part, signal).then(readInitLayout);
    assert.equal(await reasonOf(reading(box('moov', track(u32(0))))), 'accepted');
    assert.equal(await reasonOf(reading(box('moov', track(u32(1) + u32(0))))), 'FRAGMENT_MALFORMED');
    assert.equal(
      await reasonOf(reading(box('moov', track(u32(0)), box('udta', tablesAt(u32(0)))))),
      'FRAGMENT_MALFORMED',
    );
  });
});

describe('an init segment', () => {
  test('that says how a sample is encrypted, as ffmpeg does, says it behind the manifest too', async () => {
    const ftyp = box('ftyp', '69736f6d00000000');
    const senc = box('senc', u32(0), u32(1), '0102030405060708');
    const HEAD_BYTES = 5 * 8 + 20;
    const moovAt = (start: number, version: number): Buffer => {
      const offset = u32(start + HEAD_BYTES + 16 + 8);
      const saio = box('saio', version === 0 ? u32(0) : '01000000', u32(1), version === 0 ? offset : u32(0) + offset);
      const stbl = box('stbl', senc, saio, box('saiz', u32(0), '08', u32(1)));
      return box('moov', box('trak', box('tkhd', u32(0), u32(0), u32(0), u32(1)), box('mdia', box('minf', stbl))));
    };
    for (const version of [0, 1]) {
      const source = memorySource(Buffer.concat([ftyp, moovAt(ftyp.length, version)]));
      const plan = planInit(await readInitLayout(await readerOf(source, part, signal)), 100);
      const sink = memorySink(outputSizeBytes(plan));
      await executePlan(plan, source, sink, { signal });
      const start = sink.bytes.indexOf('moov') - 4;
      assert.deepEqual(sink.bytes.subarray(start), moovAt(start, version));
    }
  });
});

describe('a fragment', () => {
  test('gets room immediately before its moof', async () => {
    const styp = box('styp', '6d736468');
    assert.deepEqual(
      await signed(Buffer.concat([styp, moof, mdat]), 3),
      Buffer.concat([styp, Buffer.alloc(3), moof, mdat]),
    );
  });

  test('loses file types and indexes, which no hash covers', async () => {
    const bytes = Buffer.concat([box('ftyp', '69736f6d00000000'), moof, mdat, box('mfra', '')]);
    assert.deepEqual(await signed(bytes, 2), Buffer.concat([Buffer.alloc(2), moof, mdat]));
  });

  test('loses earlier Merkle boxes', async () => {
    const earlier = box('uuid', 'd8fec3d61b0e483c92975828877ec481', '00000000', Buffer.from('merkle\0'), 'a0');
    const bytes = Buffer.concat([earlier, moof, earlier, mdat]);
    assert.deepEqual(await signed(bytes, 2), Buffer.concat([Buffer.alloc(2), moof, mdat]));
  });

  test('has its segment index span what was inserted, wherever the index points', async () => {
    const sidx = (firstOffset: number, size: number): Buffer =>
      box(
        'sidx',
        '00000000',
        u32(1),
        u32(1000),
        u32(0),
        u32(firstOffset),
        '00000001',
        u32(size),
        u32(1000),
        '90000000',
      );
    const emsg = box('emsg', '00000000');
    const media = moof.length + mdat.length;
    const cases: [Buffer, Buffer][] = [
      [Buffer.concat([sidx(0, media), moof, mdat]), Buffer.concat([sidx(0, media + 5), Buffer.alloc(5), moof, mdat])],
      [
        Buffer.concat([sidx(emsg.length, media), emsg, moof, mdat]),
        Buffer.concat([sidx(emsg.length, media + 5), emsg, Buffer.alloc(5), moof, mdat]),
      ],
      [
        Buffer.concat([sidx(0, emsg.length + media), emsg, moof, mdat]),
        Buffer.concat([sidx(0, emsg.length + media + 5), emsg, Buffer.alloc(5), moof, mdat]),
      ],
    ];
    for (const [before, after] of cases) assert.deepEqual(await signed(before, 5), after);
  });

  test('has base data offsets moved with its moof', async () => {
    const withBase = (base: number): Buffer =>
      box('moof', box('traf', box('tfhd', '00000001', u32(1), u32(0), u32(base))));
    const before = Buffer.concat([withBase(36), mdat]);
    assert.deepEqual(await signed(before, 7), Buffer.concat([Buffer.alloc(7), withBase(43), mdat]));
  });

  test('is refused where it is cut short, chunked, empty, or no fragment', async () => {
    const whole = Buffer.concat([moof, mdat]);
    const cases: [Buffer, string][] = [
      [whole.subarray(0, -1), 'BMFF_BOX_EXCEEDS_PARENT'],
      [Buffer.concat([whole, whole]), 'FRAGMENT_IS_CHUNKED'],
      [Buffer.concat([moof, mdat, mdat]), 'FRAGMENT_IS_CHUNKED'],
      [Buffer.alloc(0), 'FRAGMENT_MALFORMED'],
      [moof, 'FRAGMENT_MALFORMED'],
      [Buffer.concat([box('moov'), moof, mdat]), 'FRAGMENT_MALFORMED'],
      [Buffer.from('474000100000b00d', 'hex'), 'BMFF_BOX_EXCEEDS_PARENT'],
    ];
    for (const [bytes, reason] of cases) assert.equal(await reasonOf(layoutOf(bytes)), reason);
  });

  test('of any bytes is read or refused with an error of the catalogue', async () => {
    const base = Buffer.concat([box('styp', '6d736468'), box('sidx', '00'.repeat(36)), moof, mdat]);
    const edits = fc.array(fc.tuple(fc.nat(base.length - 1), fc.nat(255)), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(edits, fc.nat(base.length), async (changes, length) => {
        const bytes = Buffer.from(base);
        for (const [position, value] of changes) bytes[position] = value;
        await reasonOf(signed(bytes.subarray(0, length), 9));
        await reasonOf(readerOf(memorySource(bytes), part, signal).then(readInitLayout));
      }),
      { numRuns: 500 },
    );
  });
});

/** As ffmpeg writes it where it is not told otherwise. */
describe('a fragmented file with absolute offsets', () => {
  const folder = temporaryFolder();
  makeFilm(folder);
  ffmpeg(folder, ['-i', 'film.mp4'], '-map 0:v -c copy -movflags frag_keyframe+empty_moov whole.mp4');
  const bytes = readFileSync(join(folder, 'whole.mp4'));
  const starts = [...bytes.toString('latin1').matchAll(/moof/g)].map(({ index }) => index - 4);
  const end = bytes.indexOf('mfra') - 4;
  const [first = 0] = starts;
  const ranges = starts.map((start, at) => ({ start, length: (starts[at + 1] ?? end) - start }));

  async function assertPlays(map: string, addresses: readonly string[], media: Record<string, Buffer>): Promise<void> {
    const head = ['#EXTM3U', '#EXT-X-TARGETDURATION:1', `#EXT-X-MAP:${map}`];
    const playlist = [...head, ...addresses.flatMap((address) => ['#EXTINF:1,', address]), '#EXT-X-ENDLIST', ''];
    const patterns = { playlist: '*.m3u8', init: '{whole,init}.mp4', frag: '*.{mp4,m4s}' };
    const { files, renditions } = await signFolder(folderOf({ 'p.m3u8': playlist.join('\n'), ...media }), patterns);
    const [{ init, fragments }] = renditions as [{ init: string; fragments: readonly string[] }];
    for (const fragment of fragments) {
      assert.deepEqual(await problemsOf(files[init] as Buffer, files[fragment] as Buffer), []);
    }
    const whole = Buffer.concat([init, ...fragments].map((path) => files[path] as Buffer));
    writeFileSync(join(folder, 'joined.mp4'), whole);
    const [joined, source] = allDecodedFrames(['joined.mp4', 'whole.mp4'].map((name) => join(folder, name)));
    assert.equal(joined, source);
  }

  test('plays where it is laid out anew', async () => {
    const addresses = ranges.map(({ start, length }) => `#EXT-X-BYTERANGE:${length}@${start}\nwhole.mp4`);
    await assertPlays(`URI="whole.mp4",BYTERANGE="${first}@0"`, addresses, { 'whole.mp4': bytes });
  });

  test('plays where its fragments are files, and the offsets count from the start of all', async () => {
    const cut = ranges.map(({ start, length }, at) => [`${at}.m4s`, bytes.subarray(start, start + length)]);
    const media = { 'init.mp4': bytes.subarray(0, first), ...Object.fromEntries(cut) };
    await assertPlays(
      'URI="init.mp4"',
      cut.map(([name]) => name as string),
      media,
    );
  });
});

test('an exclusion that looks at a place of every box a million times is not taken', () => {
  const data = [{ offset: 8, value: new Uint8Array(4) }];
  assert.deepEqual(readBoxExclusion({ xpath: '/free', data })?.data, data);
  const million = new Array<unknown>(1_000_000).fill({ offset: 0, value: new Uint8Array(0) });
  assert.equal(readBoxExclusion({ xpath: '/free', data: million }), undefined);
});

test('a Merkle box holds a place with its proof and nothing else: nobody signs what stands in it', () => {
  const place = { uniqueId: 1, localId: 2, location: 3, hashes: [Buffer.alloc(32), Buffer.alloc(32)] };
  const read = (content: unknown) => readMerkleBox(cborg.encode(content));
  assert.deepEqual(read(place)?.location, 3);
  assert.deepEqual(read({ ...place, hashes: null })?.location, 3);
  assert.equal(read({ ...place, media: Buffer.from('sound') }), undefined);
  assert.equal(read({ ...place, hashes: [Buffer.alloc(500)] }), undefined);
  assert.equal(read({ ...place, hashes: [Buffer.alloc(32), Buffer.alloc(48)] }), undefined);
  assert.equal(read({ ...place, hashes: Array.from({ length: 25 }, () => Buffer.alloc(32)) }), undefined);
  const long = Buffer.from(cborg.encode({ ...place, location: 0 }));
  // A zero in nine bytes.
  const at = long.lastIndexOf('location', undefined, 'latin1') + 'location'.length;
  const wide = Buffer.concat([long.subarray(0, at), Buffer.from('1b0000000000000000', 'hex'), long.subarray(at + 1)]);
  assert.equal(readMerkleBox(long)?.location, 0);
  assert.equal(readMerkleBox(wide), undefined);
});
