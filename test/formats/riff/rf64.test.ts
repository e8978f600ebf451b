import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { riff } from '#formats/riff/riff.ts';
import { assertValid, decodedMd5, mediaFolder, run, signBytes } from '../../support/judges/file-judges.ts';
import { type Chunk, chunk, FORMAT, takeApart, wav } from '../../support/media/wav-bytes.ts';
import { embed, refusalOf } from '../../support/memory-bytes.ts';
import { sparseSource } from '../isobmff/sparse-source.ts';

const IN_DS64 = 0xffff_ffff;
const SOUND = Buffer.from([1, 2, 3, 4, 5]);
const manifest = Buffer.from('a manifest');

/** The chunk with the 64-bit sizes (EBU Tech 3306, §3.2). */
function ds64({
  riffSizeBytes,
  dataSizeBytes,
  sampleCount = 0,
}: {
  riffSizeBytes: number;
  dataSizeBytes: number;
  sampleCount?: number;
}): Chunk {
  const payload = Buffer.alloc(28);
  payload.writeBigUInt64LE(BigInt(riffSizeBytes), 0);
  payload.writeBigUInt64LE(BigInt(dataSizeBytes), 8);
  payload.writeBigUInt64LE(BigInt(sampleCount), 16);
  return { id: 'ds64', payload };
}

interface Options {
  readonly signature?: string;
  readonly sizes?: Chunk;
  readonly statedDataSizeBytes?: number;
  readonly behind?: readonly Chunk[];
}

/** 36 bytes of ds64, 24 of FORMAT, 14 of sound with its pad byte, the form type, and the bytes behind. */
function wave64({
  signature = 'RF64',
  behind = [],
  sizes = ds64({ riffSizeBytes: 78 + wav(behind).length - 12, dataSizeBytes: SOUND.length }),
  statedDataSizeBytes = IN_DS64,
}: Options = {}): Buffer {
  return Buffer.concat([
    wav([sizes, FORMAT], { signature, riffSizeBytes: IN_DS64 }),
    chunk('data', SOUND, { sizeBytes: statedDataSizeBytes }),
    wav(behind).subarray(12),
  ]);
}

describe('a 64-bit WAVE file that fits into RIFF', () => {
  const sizes = ds64({ riffSizeBytes: 78, dataSizeBytes: SOUND.length });
  const kept: readonly Chunk[] = [{ id: 'JUNK', payload: sizes.payload }, FORMAT, { id: 'data', payload: SOUND }];
  const signed = { id: 'C2PA', payload: manifest };

  for (const signature of ['RF64', 'BW64']) {
    test(`becomes RIFF where it is ${signature}: its 64-bit sizes are junk there`, async () => {
      const { output } = await embed(riff, wave64({ signature }), manifest);
      assert.deepEqual(takeApart(output), { chunks: [...kept, signed], after: '' });
    });
  }

  test('keeps the chunks behind its sound', async () => {
    const behind = [{ id: 'axml', payload: Buffer.from('<a/>') }];
    const { output } = await embed(riff, wave64({ behind }), manifest);
    assert.deepEqual(takeApart(output).chunks.slice(3), [...behind, signed]);
  });

  test('is taken by the size that its sound has in 32 bits, where that is stated', async () => {
    const stale = ds64({ riffSizeBytes: 78, dataSizeBytes: 0 });
    const { output } = await embed(riff, wave64({ sizes: stale, statedDataSizeBytes: SOUND.length }), manifest);
    assert.deepEqual(takeApart(output).chunks[2], { id: 'data', payload: SOUND });
  });

  test('is taken to its end where it was never closed', async () => {
    const open = wave64({ sizes: ds64({ riffSizeBytes: 0, dataSizeBytes: 0 }) });
    const { output } = await embed(riff, open, manifest);
    assert.deepEqual(takeApart(output).chunks[2], { id: 'data', payload: Buffer.concat([SOUND, Buffer.alloc(1)]) });
  });

  test('gives up the manifest that it holds', async () => {
    const { output, layout } = await embed(
      riff,
      wave64({ behind: [{ id: 'C2PA', payload: Buffer.from('old') }] }),
      manifest,
    );
    assert.equal(layout.manifest?.length, 3);
    assert.deepEqual(takeApart(output).chunks.slice(1), [...kept.slice(1), signed]);
  });

  test('states its number of samples where that is among its 64-bit sizes', async () => {
    const factOf = async (inFact: number, inDs64: number): Promise<number | undefined> => {
      const payload = Buffer.alloc(8, 7);
      payload.writeUInt32LE(inFact);
      const counted = ds64({ riffSizeBytes: 94, dataSizeBytes: SOUND.length, sampleCount: inDs64 });
      const { output } = await embed(riff, wave64({ sizes: counted, behind: [{ id: 'fact', payload }] }), manifest);
      const fact = takeApart(output).chunks[3];
      assert.deepEqual([fact?.id, fact?.payload.subarray(4)], ['fact', payload.subarray(4)]);
      return fact?.payload.readUInt32LE();
    };
    assert.equal(await factOf(IN_DS64, 10), 10);
    assert.equal(await factOf(9, 10), 9);
    assert.equal(await factOf(IN_DS64, 0), IN_DS64);
    assert.equal(await factOf(IN_DS64, 2 ** 33), IN_DS64);
  });

  test('is as long as before when its sound is compressed', async () => {
    const folder = mediaFolder();
    const durationOf = (name: string): string =>
      run(folder, 'ffprobe', '-v', 'error', '-show_entries', 'stream=duration', name).toString();
    const tone = ['-v', 'error', '-f', 'lavfi', '-i', 'sine=frequency=440:duration=1'];
    run(folder, 'ffmpeg', ...tone, '-c:a', 'adpcm_ms', '-rf64', 'always', 'a.wav');
    const output = await signBytes(riff, readFileSync(path.join(folder, 'a.wav')));
    await assertValid(output, 'audio/wav');
    writeFileSync(path.join(folder, 'signed.wav'), output);
    assert.equal(durationOf('signed.wav'), durationOf('a.wav'));
  });

  test('is valid when signed, sounds the same, and can be signed again', async () => {
    const folder = mediaFolder();
    const tone = ['-v', 'error', '-f', 'lavfi', '-i', 'sine=frequency=440:duration=1', '-metadata', 'title=A tone'];
    run(folder, 'ffmpeg', ...tone, '-write_bext', '1', '-rf64', 'always', 'a.wav');
    const input = readFileSync(path.join(folder, 'a.wav'));
    assert.equal(input.toString('latin1', 0, 4), 'RF64');
    const once = await signBytes(riff, input);
    const twice = await signBytes(riff, once);
    for (const output of [once, twice]) {
      await assertValid(output, 'audio/wav');
      assert.equal(decodedMd5(folder, output, 'wav'), decodedMd5(folder, input, 'wav'));
    }
  });
});

describe('a 64-bit WAVE file is refused', () => {
  const refusals: Record<string, [Buffer, string]> = {
    'when it is too large for RIFF': [
      wave64({ sizes: ds64({ riffSizeBytes: 2 ** 32, dataSizeBytes: SOUND.length }) }),
      'RIFF_64_BIT',
    ],
    'when its sound is too large for RIFF': [
      wave64({ sizes: ds64({ riffSizeBytes: 78, dataSizeBytes: 2 ** 53 }) }),
      'RIFF_64_BIT',
    ],
    'when it is cut short': [
      wave64({ sizes: ds64({ riffSizeBytes: 1078, dataSizeBytes: 1000 }) }),
      'RIFF_CHUNK_EXCEEDS_PARENT',
    ],
    'when it has no 64-bit sizes': [
      wav([FORMAT, { id: 'data', payload: SOUND }], { signature: 'RF64' }),
      'RIFF_CHUNK_MISSING',
    ],
    'when its 64-bit sizes are cut short': [
      wave64({ sizes: { id: 'ds64', payload: Buffer.alloc(12) } }),
      'RIFF_CHUNK_MISSING',
    ],
    'when it ends in its 64-bit sizes': [wave64().subarray(0, 30), 'RIFF_CHUNK_MISSING'],
  };
  test('when its sizes are from before it grew too large for RIFF', async () => {
    const source = sparseSource([wave64(), 2 ** 32]);
    await assert.rejects(riff.readLayout(source, new AbortController().signal), { reason: 'RIFF_64_BIT' });
  });

  for (const [when, [input, reason]] of Object.entries(refusals)) {
    test(when, async () => assert.equal(await refusalOf(riff, input), reason));
  }
});
