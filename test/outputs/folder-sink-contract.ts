import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readRange } from '#bytes/byte-source.ts';
import { type FolderSink, isPlaylist } from '#outputs/output-sink.ts';
import { type Files, fill, NEW, OLD } from './publication-files.ts';

/** A place that folder sinks of one kind write to, with nothing in it. */
export interface FolderSinkPlace {
  /** Starts staging a folder of `sizeBytes` for the place's one destination. */
  stage(sizeBytes: number): Promise<FolderSink>;
  /**
   * True where files of free names are seen before the delivery, because nothing there can be renamed: then what players
   * start from, and whatever stood there before, are all that the delivery changes at once.
   */
  readonly showsNewMedia?: boolean;
  /** Returns the contents of the destination; null for nothing. */
  delivered(): Promise<Files | null>;
  /** Names of whatever else the sinks left at the place: staged folders, open uploads, notes. */
  leftovers(): Promise<readonly string[]>;
  cleanUp(): Promise<void>;
}

const never = new AbortController().signal;

/** The files that a player finds at a path, and those that were there before. */
async function seen(place: FolderSinkPlace, earlier: Files | null): Promise<Files | null> {
  const delivered = await place.delivered();
  if (place.showsNewMedia !== true || delivered === null) return delivered;
  const names = Object.keys(delivered).filter((path) => earlier?.[path] !== undefined || isPlaylist(path));
  return names.length === 0 ? null : Object.fromEntries(names.map((path) => [path, delivered[path] ?? '']));
}

/** The obligations of every `FolderSink`. */
export function folderSinkContract(what: string, openPlace: () => Promise<FolderSinkPlace>): void {
  const withPlace = async (use: (place: FolderSinkPlace) => Promise<void>) => {
    const place = await openPlace();
    try {
      await use(place);
    } finally {
      await place.cleanUp();
    }
  };

  describe(`${what} as a folder sink`, () => {
    test('delivers files that were written side by side, in folders of any depth', () =>
      withPlace(async (place) => {
        const sink = await fill(await place.stage(100), NEW);
        await sink.commit(never);
        assert.deepEqual(await place.delivered(), NEW);
        assert.deepEqual(await place.leftovers(), []);
      }));

    test('takes the bytes of a file in any order, and its buffer back', () =>
      withPlace(async (place) => {
        const sink = await place.stage(12);
        const part = await sink.create('a/b.m4s', never);
        const buffer = Buffer.from('last');
        await part.write(buffer, 8, never);
        buffer.write('midd');
        await Promise.all([part.write(buffer, 4, never), part.write(Buffer.from('frst'), 0, never)]);
        await part.close();
        await part.close();
        await sink.seal(never);
        await sink.commit(never);
        assert.deepEqual(await place.delivered(), { 'a/b.m4s': 'frstmiddlast' });
      }));

    test('takes hundreds of files that are open at once', () =>
      withPlace(async (place) => {
        const files = Object.fromEntries(
          Array.from({ length: 300 }, (_, index) => [`${index % 7}/${index}`, `${index}`]),
        );
        await (await fill(await place.stage(1000), files)).commit(never);
        assert.deepEqual(await place.delivered(), files);
      }));

    test('shows nothing at the destination before it is committed, and can be read back once sealed', () =>
      withPlace(async (place) => {
        const sink = await place.stage(8);
        for (const path of ['v/a.m4s', 'v/a.m3u8']) {
          const part = await sink.create(path, never);
          await part.write(Buffer.from('abcd'), 0, never);
          assert.equal(await seen(place, null), null);
          await part.close();
        }
        await sink.seal(never);
        assert.equal(await seen(place, null), null);
        const staged = await sink.open('v/a.m4s', never);
        assert.equal((await readRange(staged, 0, staged.sizeBytes, never)).toString(), 'abcd');
        await staged.close();
        await sink.commit(never);
        assert.deepEqual(await place.delivered(), { 'v/a.m4s': 'abcd', 'v/a.m3u8': 'abcd' });
      }));

    test('replaces a publication that was delivered before as a whole, and keeps it until then', () =>
      withPlace(async (place) => {
        for (const [earlier, files] of [
          [null, OLD],
          [OLD, NEW],
          [NEW, OLD],
        ] as const) {
          const sink = await fill(await place.stage(100), files);
          assert.deepEqual(await seen(place, earlier), earlier);
          await sink.commit(never);
          assert.deepEqual(await place.delivered(), files);
          assert.deepEqual(await place.leftovers(), []);
        }
      }));

    test('leaves nothing when it is discarded, at any point and more than once', () =>
      withPlace(async (place) => {
        const steps = [
          async () => undefined,
          async (sink: FolderSink) => void (await sink.create('a/open.m4s', never)),
          async (sink: FolderSink) => (await sink.create('a/closed.m4s', never)).close(),
          async (sink: FolderSink) => void (await fill(sink, NEW)),
        ];
        for (const step of steps) {
          const sink = await place.stage(4);
          await step(sink);
          await sink.discard();
          await sink.discard();
          assert.equal(await place.delivered(), null);
          assert.deepEqual(await place.leftovers(), []);
        }
      }));

    test('keeps what it delivered when it is discarded afterwards', () =>
      withPlace(async (place) => {
        const sink = await fill(await place.stage(100), NEW);
        await sink.commit(never);
        await sink.discard();
        assert.deepEqual(await place.delivered(), NEW);
      }));

    test('does nothing for an aborted signal but reject with its reason', () =>
      withPlace(async (place) => {
        const reason = new Error('stopped by the test');
        const aborted = AbortSignal.abort(reason);
        const sink = await place.stage(4);
        await assert.rejects(sink.create('a', aborted), reason);
        const part = await sink.create('a', never);
        await assert.rejects(part.write(Buffer.from('abcd'), 0, aborted), reason);
        await part.close();
        await assert.rejects(sink.seal(aborted), reason);
        await sink.seal(never);
        await assert.rejects(sink.commit(aborted), reason);
        assert.equal(await seen(place, null), null);
        await sink.discard();
        assert.equal(await place.delivered(), null);
        assert.deepEqual(await place.leftovers(), []);
      }));
  });
}
