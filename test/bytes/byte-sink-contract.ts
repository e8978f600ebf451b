import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import type { ByteSink } from '#bytes/byte-sink.ts';

/** Empty destination that sinks of one kind write to. */
export interface SinkPlace {
  /** Starts staging an output of `sizeBytes` for the place's one destination. */
  stage(sizeBytes: number): Promise<ByteSink>;
  /** Returns the bytes at the destination, or null. */
  delivered(): Promise<Buffer | null>;
  /** Names of whatever else the sinks left at the place: staged files, open uploads, notes. */
  leftovers(): Promise<readonly string[]>;
  cleanUp(): Promise<void>;
}

const MIB = 1024 * 1024;
const never = new AbortController().signal;

/** The obligations of every `ByteSink`. */
export function byteSinkContract(what: string, openPlace: () => Promise<SinkPlace>): void {
  const withPlace = async (use: (place: SinkPlace) => Promise<void>) => {
    const place = await openPlace();
    try {
      await use(place);
    } finally {
      await place.cleanUp();
    }
  };

  describe(`${what} as a byte sink`, () => {
    test('commits bytes that were written in any order and concurrently, the start last', () =>
      withPlace(async (place) => {
        const content = randomBytes(3 * MIB + 11);
        const sink = await place.stage(content.length);
        const positions = [2 * MIB, 3 * MIB, MIB];
        await Promise.all(
          positions.map((position) => sink.write(content.subarray(position, position + MIB), position, never)),
        );
        await sink.write(content.subarray(0, MIB), 0, never);
        await sink.seal(never);
        await sink.commit(never);
        assert.ok((await place.delivered())?.equals(content));
        assert.deepEqual(await place.leftovers(), []);
      }));

    test('lets the caller reuse a buffer as soon as it was written', () =>
      withPlace(async (place) => {
        const sink = await place.stage(2 * MIB);
        const buffer = Buffer.alloc(MIB, 1);
        await sink.write(buffer, 0, never);
        buffer.fill(2);
        await sink.write(buffer, MIB, never);
        buffer.fill(3);
        await sink.seal(never);
        await sink.commit(never);
        assert.ok((await place.delivered())?.equals(Buffer.concat([Buffer.alloc(MIB, 1), Buffer.alloc(MIB, 2)])));
      }));

    test('shows nothing at the destination before it is committed, and can be read back once sealed', () =>
      withPlace(async (place) => {
        const sink = await place.stage(4);
        await sink.write(Buffer.from('abcd'), 0, never);
        assert.equal(await place.delivered(), null);
        await sink.seal(never);
        assert.equal(await place.delivered(), null);
        if (sink.stagedPath !== undefined) assert.equal(await readFile(sink.stagedPath, 'latin1'), 'abcd');
        await sink.commit(never);
        assert.equal((await place.delivered())?.toString(), 'abcd');
      }));

    test('replaces an earlier output at the commit, and keeps it until then', () =>
      withPlace(async (place) => {
        for (const [earlier, content] of [
          [undefined, 'first and longer'],
          ['first and longer', 'second'],
        ] as const) {
          const sink = await place.stage(content.length);
          await sink.write(Buffer.from(content), 0, never);
          await sink.seal(never);
          assert.equal((await place.delivered())?.toString(), earlier);
          await sink.commit(never);
          assert.equal((await place.delivered())?.toString(), content);
        }
      }));

    test('leaves nothing when it is discarded, at any point and more than once', () =>
      withPlace(async (place) => {
        for (const steps of [0, 1, 2]) {
          const sink = await place.stage(4);
          if (steps > 0) await sink.write(Buffer.from('abcd'), 0, never);
          if (steps > 1) await sink.seal(never);
          await sink.discard();
          await sink.discard();
          assert.equal(await place.delivered(), null);
          assert.deepEqual(await place.leftovers(), []);
        }
      }));

    test('keeps its output when it is discarded after the commit', () =>
      withPlace(async (place) => {
        const sink = await place.stage(4);
        await sink.write(Buffer.from('abcd'), 0, never);
        await sink.seal(never);
        await sink.commit(never);
        await sink.discard();
        assert.equal((await place.delivered())?.toString(), 'abcd');
      }));

    test('does nothing for an aborted signal but reject with its reason', () =>
      withPlace(async (place) => {
        const reason = new Error('stopped by the test');
        const aborted = AbortSignal.abort(reason);
        const sink = await place.stage(4);
        await assert.rejects(sink.write(Buffer.from('abcd'), 0, aborted), reason);
        await sink.write(Buffer.from('abcd'), 0, never);
        await assert.rejects(sink.seal(aborted), reason);
        await sink.seal(never);
        await assert.rejects(sink.commit(aborted), reason);
        assert.equal(await place.delivered(), null);
        await sink.discard();
        assert.deepEqual(await place.leftovers(), []);
      }));
  });
}
