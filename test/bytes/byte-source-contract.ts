import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';

/** Source under test over the given bytes, with its clean-up. */
export interface OpenedSource {
  readonly source: ByteSource;
  cleanUp(): Promise<void>;
}

const CONTENT = randomBytes(3 * 1024 * 1024 + 17);
const never = new AbortController().signal;

/** The obligations of every `ByteSource`. `open` makes a source that holds exactly the given bytes. */
export function byteSourceContract(what: string, open: (content: Buffer) => Promise<OpenedSource>): void {
  const withSource = async (use: (source: ByteSource) => Promise<void>) => {
    const { source, cleanUp } = await open(CONTENT);
    try {
      await use(source);
    } finally {
      await source.close();
      await cleanUp();
    }
  };

  describe(`${what} as a byte source`, () => {
    test('knows its size and has a name of one segment', () =>
      withSource(async (source) => {
        assert.equal(source.sizeBytes, CONTENT.length);
        assert.notEqual(source.name, '');
        assert.doesNotMatch(source.name, /[/\\\p{Cc}]/u);
      }));

    test('fills the whole target from any offset', () =>
      withSource(async (source) => {
        for (const [offset, length] of [
          [0, 1],
          [0, CONTENT.length],
          [CONTENT.length - 1, 1],
          [1024 * 1024 - 3, 7],
          [99, 2 * 1024 * 1024],
          [CONTENT.length, 0],
        ] as const) {
          const bytes = await readRange(source, offset, length, never);
          assert.ok(bytes.equals(CONTENT.subarray(offset, offset + length)), `[${offset}, +${length})`);
        }
      }));

    test('serves concurrent reads, and the same range again', () =>
      withSource(async (source) => {
        const offsets = Array.from({ length: 24 }, (_, index) => (index % 12) * 200_003);
        const read = await Promise.all(offsets.map((offset) => readRange(source, offset, 150_000, never)));
        for (const [index, offset] of offsets.entries()) {
          assert.ok(read[index]?.equals(CONTENT.subarray(offset, offset + 150_000)), `offset ${offset}`);
        }
      }));

    test('refuses to read past the end', () =>
      withSource(async (source) => {
        for (const offset of [CONTENT.length - 10, CONTENT.length, CONTENT.length + 1_000_000]) {
          await assert.rejects(readRange(source, offset, 11, never), (error) => {
            assert.ok(error instanceof AppError);
            assert.equal(error.reason, 'SOURCE_ENDED_EARLY');
            return true;
          });
        }
      }));

    test('rejects with the reason of an aborted signal, and serves others on', () =>
      withSource(async (source) => {
        const reason = new Error('stopped by the test');
        await assert.rejects(readRange(source, 0, 10, AbortSignal.abort(reason)), reason);
        const bytes = await readRange(source, 0, CONTENT.length, never);
        assert.equal(digestOf(bytes), digestOf(CONTENT));
      }));

    test('finds itself unchanged when nobody changed it', () =>
      withSource(async (source) => {
        await source.checkUnchanged?.(never);
      }));

    test('can be closed more than once', () =>
      withSource(async (source) => {
        await source.close();
        await source.close();
      }));

    test('has a local path only to the same bytes', () =>
      withSource(async (source) => {
        if (source.localPath === undefined) return;
        const { readFile } = await import('node:fs/promises');
        assert.ok((await readFile(source.localPath)).equals(CONTENT));
      }));
  });
}

function digestOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
