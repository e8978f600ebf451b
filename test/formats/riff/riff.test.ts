import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AppError } from '#errors/app-error.ts';
import { riff } from '#formats/riff/riff.ts';
import { type Chunk, chunk, FORMAT, takeApart, wav } from '../../support/media/wav-bytes.ts';
import { embed, memorySource, refusalOf } from '../../support/memory-bytes.ts';
import { sparseSource } from '../isobmff/sparse-source.ts';

const DATA: Chunk = { id: 'data', payload: Buffer.from([1, 2, 3]) };
const manifest = Buffer.from('a manifest');

describe('the plan of a WAV file', () => {
  test('puts the manifest into the last chunk and states the new RIFF size', async () => {
    const { output } = await embed(riff, wav([FORMAT, DATA]), Buffer.from('abc'));
    const expected =
      '52494646 34000000 57415645 666d7420 10000000 01000100401f0000401f000001000800 64617461 03000000 01020300' +
      '43325041 03000000 61626300';
    assert.equal(output.toString('hex'), expected.replaceAll(' ', ''));
  });

  test('leaves the header and the payload of the manifest chunk out of the hash, and not its pad byte', async () => {
    const { output, binding } = await embed(riff, wav([FORMAT, DATA]), Buffer.from('abc'));
    const start = output.indexOf('C2PA');
    const hash = createHash('sha256')
      .update(output.subarray(0, start))
      .update(output.subarray(start + 11))
      .digest();
    assert.deepEqual(binding.data, {
      exclusions: [{ start, length: 11 }],
      name: 'jumbf manifest',
      alg: 'sha256',
      hash: [...hash],
      // Two integers of nine bytes would take so many bytes beyond these of two bytes and one.
      pad: new Array(15).fill(0),
    });
  });

  test('replaces every manifest at any position', async () => {
    const old: Chunk = { id: 'C2PA', payload: Buffer.from('old') };
    const { output, layout } = await embed(riff, wav([old, FORMAT, old, DATA, old]), manifest);
    assert.deepEqual(layout.manifest, { offset: 20, length: 3 });
    assert.deepEqual(takeApart(output).chunks, [FORMAT, DATA, { id: 'C2PA', payload: manifest }]);
  });

  test('gives back the same bytes when a manifest of the same size is put in again', async () => {
    const once = await embed(riff, wav([FORMAT, DATA], { after: 'id3 tag' }), manifest);
    const twice = await embed(riff, once.output, manifest);
    assert.deepEqual(twice.output, once.output);
  });

  test('adds the pad byte that the last chunk lacks', async () => {
    for (const riffSizeBytes of [39, 40]) {
      const input = wav([FORMAT, DATA], { riffSizeBytes }).subarray(0, -1);
      const { output } = await embed(riff, input, manifest);
      assert.deepEqual(takeApart(output), { chunks: [FORMAT, DATA, { id: 'C2PA', payload: manifest }], after: '' });
    }
  });

  test('finds the pad byte of the last chunk where the RIFF size leaves it out, and something follows', async () => {
    const { output } = await embed(riff, wav([FORMAT, DATA], { riffSizeBytes: 39, after: 'chna' }), manifest);
    assert.deepEqual(takeApart(output), { chunks: [FORMAT, DATA, { id: 'C2PA', payload: manifest }], after: 'chna' });
    const unpadded = Buffer.concat([wav([FORMAT, DATA], { riffSizeBytes: 39 }).subarray(0, -1), Buffer.from('after')]);
    assert.equal(takeApart((await embed(riff, unpadded, manifest)).output).after, 'after');
  });

  test('adds the pad bytes that other chunks lack, and replaces a manifest that lacks it', async () => {
    const old = chunk('C2PA', Buffer.from('old'), { padded: false });
    const last: Chunk = { id: 'LIST', payload: Buffer.from('INFO') };
    const body = Buffer.concat([chunk('data', DATA.payload, { padded: false }), old, chunk(last.id, last.payload)]);
    const input = Buffer.concat([wav([FORMAT], { riffSizeBytes: 28 + body.length }), body]);
    const { output } = await embed(riff, input, manifest);
    assert.deepEqual(takeApart(output), { chunks: [FORMAT, DATA, last, { id: 'C2PA', payload: manifest }], after: '' });
  });

  test('does not pad twice where the manifest that goes away lacked the pad byte', async () => {
    const body = Buffer.concat([
      wav([FORMAT, DATA], { riffSizeBytes: 51 }),
      chunk('C2PA', Buffer.from('old'), { padded: false }),
    ]);
    const { output } = await embed(riff, body, manifest);
    assert.deepEqual(takeApart(output).chunks, [FORMAT, DATA, { id: 'C2PA', payload: manifest }]);
  });

  test('accepts a RIFF size that counts its own header', async () => {
    const { output } = await embed(riff, wav([FORMAT, DATA], { riffSizeBytes: 48 }), manifest);
    assert.deepEqual(takeApart(output).chunks, [FORMAT, DATA, { id: 'C2PA', payload: manifest }]);
  });

  test('corrects a RIFF size that leaves out part of the last chunk, where that ends with the file', async () => {
    for (const [riffSizeBytes, missing] of [
      [36, 0],
      [37, 1],
    ] as const) {
      const whole = wav([FORMAT, DATA], { riffSizeBytes });
      const { output } = await embed(riff, whole.subarray(0, whole.length - missing), manifest);
      assert.deepEqual(takeApart(output), { chunks: [FORMAT, DATA, { id: 'C2PA', payload: manifest }], after: '' });
    }
  });

  test('returns the range of the XMP packet', async () => {
    const input = wav([FORMAT, DATA, { id: '_PMX', payload: Buffer.from('<x/>') }]);
    const { layout } = await embed(riff, input, manifest);
    assert.deepEqual(layout.xmp, { offset: input.indexOf('<x/>'), length: 4 });
  });

  test('keeps chunks and trailing bytes of any WAV file as they are', async () => {
    const ids = fc.stringMatching(/^[ -~]{4}$/).filter((id) => !['C2PA', 'data', 'fmt '].includes(id));
    const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
    const chunks = fc.array(
      fc.tuple(ids, bytes).map(([id, payload]) => ({ id, payload })),
      { maxLength: 8 },
    );
    await fc.assert(
      fc.asyncProperty(
        chunks,
        chunks,
        fc.stringMatching(/^[a-z]{0,9}$/),
        bytes,
        async (before, behind, after, store) => {
          const kept = [...before, FORMAT, DATA, ...behind];
          const { output } = await embed(riff, wav(kept, { after }), store);
          assert.deepEqual(takeApart(output), { chunks: [...kept, { id: 'C2PA', payload: store }], after });
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe('a WAV file that was never closed', () => {
  const unclosed: Record<string, [riffSizeBytes: number, dataSizeBytes: number]> = {
    'was written to a pipe by ffmpeg': [0xffffffff, 0xffffffff],
    'was written to a pipe by others': [0xffffffbf, 0xffffff9b],
    'was written to a pipe by SoX': [0x7ffff024, 0x7ffff000],
    'has no sizes': [0, 0],
    'has the sizes from before its sound': [36, 0],
    'has no RIFF size': [0, 50],
    'has no RIFF size but that of a pipe': [0xffffffff, 50],
  };
  for (const [what, [riffSizeBytes, sizeBytes]] of Object.entries(unclosed)) {
    test(`gets its sizes where it ${what}`, async () => {
      const sound = Buffer.alloc(50, 7);
      const input = Buffer.concat([wav([FORMAT], { riffSizeBytes }), chunk('data', sound, { sizeBytes })]);
      const { output } = await embed(riff, input, manifest);
      const chunks = [FORMAT, { id: 'data', payload: sound }, { id: 'C2PA', payload: manifest }];
      assert.deepEqual(takeApart(output), { chunks, after: '' });
    });
  }

  test('gets the pad byte of a sound that was cut off at an odd byte', async () => {
    const input = Buffer.concat([
      wav([FORMAT], { riffSizeBytes: 0 }),
      chunk('data', Buffer.alloc(7), { sizeBytes: 0, padded: false }),
    ]);
    const { output } = await embed(riff, input, manifest);
    assert.deepEqual(takeApart(output).chunks[1], { id: 'data', payload: Buffer.alloc(7) });
  });
});

describe('a WAV file is refused', () => {
  const refusals: Record<string, [Buffer, string]> = {
    'when its sound has no bytes': [
      Buffer.concat([wav([FORMAT], { riffSizeBytes: 36 }), chunk('data', Buffer.alloc(0))]),
      'RIFF_SOUND_EMPTY',
    ],
    'when its sound has no bytes, and something else follows': [
      wav([FORMAT, { id: 'data', payload: Buffer.alloc(0) }, DATA]),
      'RIFF_SOUND_EMPTY',
    ],
    'when the size of its sound is unknown, and something else follows': [
      Buffer.concat([
        wav([FORMAT], { riffSizeBytes: 94 }),
        chunk('data', Buffer.alloc(50), { sizeBytes: 0xffffffff }),
        Buffer.alloc(8),
      ]),
      'RIFF_SIZE_UNKNOWN',
    ],
    'when a chunk is longer than the file': [
      Buffer.concat([wav([FORMAT], { riffSizeBytes: 1036 }), chunk('data', Buffer.alloc(50), { sizeBytes: 1000 })]),
      'RIFF_CHUNK_EXCEEDS_PARENT',
    ],
    'when a chunk is longer than the RIFF chunk, and something else follows': [
      Buffer.concat([wav([FORMAT], { riffSizeBytes: 40 }), chunk('data', Buffer.alloc(50)), Buffer.alloc(4)]),
      'RIFF_CHUNK_EXCEEDS_PARENT',
    ],
    'when a chunk id is no text': [
      wav([FORMAT, DATA, { id: '\x00\x01\x02\x03', payload: DATA.payload }]),
      'RIFF_CHUNK_ID_INVALID',
    ],
    'when it has no audio': [wav([FORMAT]), 'RIFF_CHUNK_MISSING'],
    'when it does not say what its audio is': [wav([DATA]), 'RIFF_CHUNK_MISSING'],
    'when it has endless chunks': [
      wav(Array(5000).fill({ id: 'junk', payload: Buffer.alloc(0) })),
      'RIFF_TOO_MANY_CHUNKS',
    ],
  };
  for (const [when, [input, reason]] of Object.entries(refusals)) {
    test(when, async () => assert.equal(await refusalOf(riff, input), reason));
  }

  test('when the result would pass 4 GiB', async () => {
    const { layout } = await embed(riff, wav([FORMAT, DATA]), manifest);
    const large = { ...layout, chunksEnd: 0xffff_ff00, riffEnd: 0xffff_ff00, sizeBytes: 0xffff_ff00 };
    assert.throws(() => riff.planEmbedding(large, 1000), { reason: 'RIFF_TOO_LARGE' });
    riff.planEmbedding(large, 100);
  });

  test('when it is larger than its sizes can say, and they have started again from 0', async () => {
    const sound = 2 ** 32 + 100_000;
    const header = wav([FORMAT], { riffSizeBytes: 36 + 100_000 });
    const dataHeader = chunk('data', Buffer.alloc(0), { sizeBytes: 100_000 });
    const source = sparseSource([header, dataHeader, sound]);
    await assert.rejects(riff.readLayout(source, new AbortController().signal), { reason: 'RIFF_FILE_TOO_LARGE' });
  });

  test('with a reason, or not at all, whatever its bytes say', async () => {
    const input = wav([FORMAT, DATA, { id: 'LIST', payload: Buffer.from('INFOabcd') }], { after: 'tail' });
    const damage = fc.array(fc.tuple(fc.nat(input.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(damage, fc.nat(input.length), async (changes, length) => {
        const damaged = Buffer.from(input);
        for (const [offset, value] of changes) damaged[offset] = value;
        const cut = damaged.subarray(0, length);
        if (riff.matches(cut)) assert.equal(typeof (await refusalOf(riff, cut)), 'string');
      }),
      { numRuns: 300 },
    );
  });
});

test('a WAV file of any size is laid out by reading its chunk headers alone', async () => {
  const chunks = [
    FORMAT,
    { id: 'data', payload: Buffer.alloc(4_000_000, 1) },
    { id: 'LIST', payload: Buffer.alloc(8) },
  ];
  const { bytesRead } = await embed(riff, wav(chunks), manifest);
  assert.ok(bytesRead < 50_000, `${bytesRead} bytes were read`);
});

test('an aborted signal stops the reading of a layout', async () => {
  const aborted = AbortSignal.abort(new Error('stop'));
  await assert.rejects(riff.readLayout(memorySource(wav([FORMAT, DATA])), aborted), { message: 'stop' });
});

test('a refusal names the file, the chunk and its offset', async () => {
  const input = Buffer.concat([
    wav([FORMAT], { riffSizeBytes: 1036 }),
    chunk('data', Buffer.alloc(50), { sizeBytes: 1000 }),
  ]);
  const rejection = riff.readLayout(memorySource(input, 'x.wav'), new AbortController().signal);
  await assert.rejects(rejection, (error: AppError) => {
    assert.deepEqual(error.details, {
      name: 'x.wav',
      chunkId: 'data',
      offset: 36,
      sizeBytes: 1000,
      parent: 'file',
      limit: 94,
    });
    return true;
  });
});

test('messages about sizes name files of the kind that they are about', () => {
  const problem = { chunkId: 'RIFF', offset: 0, sizeBytes: 0xffffffff, parent: 'file', limit: 100 };
  for (const [name, example] of [
    ['film.avi', /-i in\.avi -c copy out\.avi/],
    ['sound', /-i in\.wav -c copy out\.wav/],
  ] as const) {
    assert.match(new AppError('RIFF_SIZE_UNKNOWN', { ...problem, name }).message, example);
    assert.match(new AppError('RIFF_CHUNK_EXCEEDS_PARENT', { ...problem, name }).message, example);
  }
});
