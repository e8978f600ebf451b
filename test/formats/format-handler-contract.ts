import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import * as cborg from 'cborg';
import fc from 'fast-check';
import type { ByteSource } from '#bytes/byte-source.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import { type FormatHandler, HEAD_SIZE_BYTES, type MediaLayout } from '#formats/format-handler.ts';
import { formatUnknown } from '#formats/formats.ts';
import { UNSIGNABLE_EXTENSIONS } from '#formats/unsupported-containers.ts';
import { contentTypeOf } from '#outputs/content-type.ts';
import { embed, memorySource } from '../support/memory-bytes.ts';

/** Samples of a format for the contract. */
export interface FormatSamples {
  /** Small files of the format without a manifest, some hundred bytes to some ten kilobytes each, by what they are. */
  readonly files: Readonly<Record<string, () => Buffer>>;
  /** A file with a megabyte of media or more. */
  readonly large: () => Buffer;
  /** The media of a file, as a reader finds it that shares no code with the handler. */
  readonly mediaOf: (bytes: Buffer) => unknown;
}

const never = new AbortController().signal;
/** Bytes of the headers of a large file that may be read at most. */
const MAX_HEADER_BYTES = 600 * 1024;
/** Reads of a small hostile file: a window for each of its structures, at most. */
const MAX_READS = 2000;
/** Number of positions at which a file is changed, one after the other. */
const CHANGED_POSITIONS = 32;
const TILE_SIZE_BYTES = 64 * 1024;
const MAX_ENDLESS_BYTES = 4 * 1024 * 1024;

/** The obligations of every `FormatHandler`. */
export function formatHandlerContract<Layout extends MediaLayout>(
  what: string,
  format: FormatHandler<Layout>,
  { files, large, mediaOf }: FormatSamples,
): void {
  describe(`${what} as a format handler`, () => {
    for (const [name, make] of Object.entries(files)) describe(name, () => describeFile(format, make, mediaOf));

    test('has its containers named where another is refused, and its own names are not refused', () => {
      assert.deepEqual(
        format.containers.filter(
          (container) => !formatUnknown('file', Buffer.alloc(0), 'sign').message.includes(container),
        ),
        [],
      );
      const extensions = Object.values(format.nameExtensions).flat();
      assert.deepEqual(
        extensions.filter((extension) => UNSIGNABLE_EXTENSIONS.has(extension)),
        [],
      );
    });

    test('reads the headers of a large file alone', async () => {
      const source = memorySource(large());
      await format.readLayout(source, never);
      assert.ok(source.bytesRead < Math.min(MAX_HEADER_BYTES, source.sizeBytes / 2), `${source.bytesRead} were read`);
    });

    test('gives up when it is aborted, with the reason it was given', async () => {
      const reason = new Error('stop');
      await assert.rejects(format.readLayout(memorySource(large()), AbortSignal.abort(reason)), reason);
    });

    test('refuses damaged files with a reason, or signs them, in bounded reads and memory', async () => {
      const inputs = Object.values(files).map((make) => make());
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...inputs).chain(damaged), async (input) => assertBounded(format, input)),
        { numRuns: 300 },
      );
    });

    test('ends on a file that repeats without end', async () => {
      const inputs = Object.values(files).map((make) => make());
      const start = fc.constantFrom(...inputs).chain(cutOff);
      const huge = fc.record({ start, repeated: fc.constant(Buffer.alloc(1)), sizeBytes: fc.constant(2 ** 40) });
      const large = fc.record({ start, repeated: repetitions, sizeBytes: fc.constant(MAX_ENDLESS_BYTES / 2) });
      await fc.assert(
        fc.asyncProperty(fc.oneof(huge, large), async (endless) => {
          if (!format.matches(endless.start.subarray(0, HEAD_SIZE_BYTES))) return;
          await format.readLayout(endlessSource(endless), never).catch(requireAppError);
        }),
        { numRuns: 15 },
      );
    });
  });
}

function describeFile<Layout extends MediaLayout>(
  format: FormatHandler<Layout>,
  make: () => Buffer,
  mediaOf: (bytes: Buffer) => unknown,
): void {
  test('is recognised from its first bytes, and has no manifest', async () => {
    const input = make();
    assert.ok(format.matches(input.subarray(0, HEAD_SIZE_BYTES)));
    assert.equal((await format.readLayout(memorySource(input), never)).manifest, null);
  });

  test('becomes an output with a media type', async () => {
    const { extensions } = await format.readLayout(memorySource(make()), never);
    assert.notEqual(contentTypeOf(`output.${extensions[0]}`), 'application/octet-stream');
  });

  test('gets a manifest of any size with its media unchanged, and tells its range', async () => {
    const input = make();
    const media = await mediaOf(input);
    await fc.assert(
      fc.asyncProperty(fc.nat(70_000), async (extraBytes) => {
        const manifest = manifestOf(8 + extraBytes);
        const { output } = await embed(format, input, manifest);
        assert.deepEqual(await mediaOf(output), media);
        const found = (await format.readLayout(memorySource(output), never)).manifest;
        assert.ok(found !== null);
        assert.ok(output.subarray(found.offset, found.offset + found.length).equals(manifest));
      }),
      { numRuns: 10 },
    );
  });

  test('is bound to its media: another medium has another binding', async () => {
    const input = make();
    const media = await mediaOf(input);
    const { binding } = await embed(format, input, manifestOf(100));
    let compared = 0;
    for (let place = 0; place < CHANGED_POSITIONS; place += 1) {
      const changed = Buffer.from(input);
      const at = Math.floor(((place + 0.5) * input.length) / CHANGED_POSITIONS);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      const embedded = await embed(format, changed, manifestOf(100)).catch(requireAppError);
      if (embedded === undefined || isDeepStrictEqual(await mediaIn(changed, mediaOf), media)) continue;
      assert.notDeepEqual(embedded.binding.data, binding.data, `the byte at ${at} is bound`);
      compared += 1;
    }
    assert.ok(compared > 0, 'bytes of the media were changed');
  });

  test('has its manifest replaced without a trace of the old one', async () => {
    const input = make();
    const media = await mediaOf(input);
    await fc.assert(
      fc.asyncProperty(fc.nat(3000), fc.nat(3000), async (firstBytes, secondBytes) => {
        const second = manifestOf(8 + secondBytes, 'second');
        const once = await embed(format, input, manifestOf(8 + firstBytes, 'first'));
        const twice = await embed(format, once.output, second);
        assert.deepEqual(await mediaOf(twice.output), media);
        const direct = await embed(format, input, second);
        assert.ok(twice.output.equals(direct.output), 'the same as if it had been put in at first');
        assert.deepEqual(twice.binding, direct.binding);
      }),
      { numRuns: 15 },
    );
  });

  test('has a plan with one hole, and a placeholder as large as its binding', async () => {
    const input = make();
    for (const manifestSizeBytes of [100, 20_000, 300_000]) {
      const { layout, output, binding } = await embed(format, input, manifestOf(manifestSizeBytes));
      const { plan } = format.planEmbedding(layout, manifestSizeBytes);
      const holes = plan.splices.filter(({ kind }) => kind === 'hole');
      assert.deepEqual(holes, [{ kind: 'hole', length: manifestSizeBytes }]);
      assert.equal(outputSizeBytes(plan), output.length);
      const placeholder = format.placeholderBinding(layout);
      assert.equal(placeholder.label, binding.label);
      assert.equal(encodedSizeOf(placeholder.data), encodedSizeOf(binding.data));
    }
  });
}

/** The media of a file that may be damaged; undefined where there is none to be found. */
async function mediaIn(bytes: Buffer, mediaOf: (bytes: Buffer) => unknown): Promise<unknown> {
  try {
    return await mediaOf(bytes);
  } catch {
    return undefined;
  }
}

/** As the SDK writes it: arrays of numbers are byte strings. */
function encodedSizeOf(data: unknown): number {
  const bytesOf = (value: unknown): unknown => {
    if (Array.isArray(value)) {
      return value.every((item) => typeof item === 'number') ? Uint8Array.from(value) : value.map(bytesOf);
    }
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, bytesOf(item)]));
  };
  return cborg.encode(bytesOf(data)).length;
}

/** Looks like a manifest store, a JUMBF box of its size, and is full of bytes that stand nowhere else. */
function manifestOf(sizeBytes: number, seed = 'manifest'): Buffer {
  const blocks = Array.from({ length: Math.ceil(sizeBytes / 32) }, (_, index) =>
    createHash('sha256').update(`${seed} ${index}`).digest(),
  );
  const manifest = Buffer.concat(blocks).subarray(0, sizeBytes);
  manifest.writeUInt32BE(sizeBytes, 0);
  manifest.write('jumb', 4, 'latin1');
  return manifest;
}

/** Numbers that sizes, counts and offsets break on. */
const extremes = [
  '00',
  'ff',
  '0000',
  'ffff',
  '00000000',
  '00000001',
  '00000007',
  '0000ffff',
  '7fffffff',
  '80000000',
  'ffffffff',
]
  .concat(['0000000000000000', '001fffffffffffff', '7fffffffffffffff', 'ffffffffffffffff'])
  .map((hex) => Buffer.from(hex, 'hex'));

function damaged(input: Buffer): fc.Arbitrary<Buffer> {
  const at = fc.nat(input.length - 1);
  const overwritten = fc.record({ at, bytes: fc.oneof(fc.constantFrom(...extremes), fc.uint8Array({ maxLength: 4 })) });
  const nested = fc.record({ at, from: at, length: fc.nat(200), times: fc.integer({ min: 1, max: 200 }) });
  const changes = fc.record({
    overwrites: fc.array(overwritten, { maxLength: 5 }),
    copies: fc.array(nested, { maxLength: 1 }),
    length: fc.oneof({ weight: 3, arbitrary: fc.constant(Infinity) }, { weight: 1, arbitrary: at }),
  });
  return changes.map(({ overwrites, copies, length }) => {
    let bytes = Buffer.from(input);
    for (const { at: position, bytes: values } of overwrites) {
      bytes.set(values.subarray(0, bytes.length - position), position);
    }
    for (const { at: position, from, length: copied, times } of copies) {
      const piece = bytes.subarray(from, from + copied);
      const copiesOfPiece = Array.from({ length: times }, () => piece);
      bytes = Buffer.concat([bytes.subarray(0, position), ...copiesOfPiece, bytes.subarray(position)]);
    }
    return bytes.subarray(0, Math.min(length, bytes.length));
  });
}

function cutOff(input: Buffer): fc.Arbitrary<Buffer> {
  return fc.oneof(fc.constant(input.length), fc.nat(input.length)).map((length) => input.subarray(0, length));
}

/** Input that a parser might walk for ever: empty boxes, empty chunks, empty frames, empty tags. */
const idle = ['0000000866726565', '6a756e6b00000000', '54495432000000000000', '49443304000000000000'].map((hex) =>
  Buffer.from(hex, 'hex'),
);
const anything = fc.uint8Array({ minLength: 1, maxLength: 16 }).map((bytes) => Buffer.from(bytes));
const repetitions = fc.oneof(fc.constantFrom(...idle), anything);

/** A file that cannot be read whole: it counts what is read of it, and fails when that is too much. */
function endlessSource(content: { start: Buffer; repeated: Buffer; sizeBytes: number }): ByteSource {
  const { start, repeated, sizeBytes } = content;
  const tile = Buffer.concat(Array.from({ length: Math.ceil(TILE_SIZE_BYTES / repeated.length) }, () => repeated));
  let totalBytes = 0;
  return {
    name: 'endless.bin',
    sizeBytes,
    async read(target, offset) {
      totalBytes += target.length;
      assert.ok(totalBytes < MAX_ENDLESS_BYTES, `${totalBytes} bytes are asked for`);
      assert.ok(offset >= 0 && offset + target.length <= sizeBytes, 'a read inside the file');
      target.set(start.subarray(offset, offset + target.length));
      for (let at = Math.max(0, start.length - offset); at < target.length; ) {
        const piece = tile.subarray((offset + at - start.length) % tile.length);
        const length = Math.min(piece.length, target.length - at);
        target.set(piece.subarray(0, length), at);
        at += length;
      }
    },
    close: () => Promise.resolve(),
  };
}

async function assertBounded<Layout extends MediaLayout>(format: FormatHandler<Layout>, input: Buffer): Promise<void> {
  if (!format.matches(input.subarray(0, HEAD_SIZE_BYTES))) return;
  let reads = 0;
  const memory = memorySource(input);
  const counted: ByteSource = {
    ...memory,
    read: (...args) => {
      reads += 1;
      return memory.read(...args);
    },
  };
  try {
    await format.readLayout(counted, never);
    const { output } = await embed(format, input, manifestOf(100));
    assert.ok(output.length <= 2 * input.length + 64 * 1024, `an output of ${output.length} bytes`);
  } catch (error) {
    requireAppError(error);
  }
  assert.ok(reads <= MAX_READS, `${reads} reads`);
}

function requireAppError(error: unknown): void {
  if (!(error instanceof AppError)) throw error;
}
