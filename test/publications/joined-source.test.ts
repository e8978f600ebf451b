import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { ByteSource } from '#bytes/byte-source.ts';
import { JoinedSource } from '#publications/joined-folder.ts';
import { folderOf } from '../support/publications/make-folder.ts';

const { signal } = new AbortController();

describe('parts that are joined', () => {
  const part = fc.record({
    bytes: fc.uint8Array({ minLength: 1, maxLength: 50 }),
    from: fc.nat(49),
    isWhole: fc.boolean(),
  });

  test('are read as one file, from any place on', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(part, { minLength: 1, maxLength: 12 }),
        fc.nat(600),
        fc.nat(600),
        async (parts, a, b) => {
          const files = Object.fromEntries(parts.map(({ bytes }, index) => [`${index}.m4s`, bytes]));
          const rangeOf = (index: number): { offset: number; length: number } | null => {
            const { bytes, from, isWhole } = parts[index] as (typeof parts)[number];
            const offset = Math.min(from, bytes.length - 1);
            return isWhole ? null : { offset, length: bytes.length - offset };
          };
          const whole = Buffer.concat(parts.map(({ bytes }, index) => bytes.subarray(rangeOf(index)?.offset ?? 0)));
          const joined = new JoinedSource(
            'joined',
            folderOf(files),
            parts.map((_, index) => ({ path: `${index}.m4s`, range: rangeOf(index) })),
            (path) => files[path]?.length ?? 0,
          );
          assert.equal(joined.sizeBytes, whole.length);
          const start = Math.min(a, b) % whole.length;
          const end = Math.max(start, Math.min(Math.max(a, b), whole.length));
          assert.deepEqual(await readRange(joined, start, end), whole.subarray(start, end));
          await joined.close();
          assert.deepEqual(await readRange(joined, 0, whole.length), whole, 'again, after it was closed');
        },
      ),
    );
  });

  test('are opened few at a time, and closed, however they are read', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 40 }, (_, index) => [`${index}.ts`, Buffer.alloc(10, index)]),
    );
    const folder = folderOf(files);
    let open = 0;
    let most = 0;
    const counting = {
      ...folder,
      name: folder.name,
      files: folder.files,
      open: async (path: string): Promise<ByteSource> => {
        const source = await folder.open(path, signal);
        most = Math.max(most, ++open);
        return {
          name: source.name,
          sizeBytes: source.sizeBytes,
          read: (...range) => source.read(...range),
          close: async () => {
            open -= 1;
            await source.close();
          },
        };
      },
    };
    const parts = Object.keys(files).map((path) => ({ path, range: null }));
    const joined = new JoinedSource('joined', counting, parts, () => 10);
    for (let at = 0; at < joined.sizeBytes; at += 40) {
      await Promise.all([0, 10, 20, 30].map((step) => readRange(joined, at + step, at + step + 10)));
    }
    await joined.close();
    assert.equal(open, 0);
    assert.ok(most <= 8, `${most} were open at once`);
  });
});

async function readRange(source: ByteSource, start: number, end: number): Promise<Buffer> {
  const target = Buffer.alloc(end - start);
  await source.read(target, start, signal);
  return target;
}
