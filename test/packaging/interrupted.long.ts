import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readlinkSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import type { InputPhase } from '#operations/operation.ts';
import type { FolderSink } from '#outputs/output-sink.ts';
import { joinRendition, packetHashes } from '../support/judges/packets.ts';
import { ffmpeg, makeFilm } from '../support/media/make-film.ts';
import { openSmallDisk, type SmallDisk } from '../support/small-disk.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { packageInput } from './package-input.ts';

const place = temporaryFolder();
const direct = join(place, 'direct');
const fed = join(place, 'fed');

before(() => {
  for (const folder of [direct, fed]) mkdirSync(folder);
  const film = makeFilm(direct);
  ffmpeg(place, ['-stream_loop', '50', '-i', film], `-map 0 -c copy ${join(fed, 'film.mkv')}`);
});

/** Every file below a folder, hidden ones included. */
function leftIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : [];
}

/** Fills a disk but for a little when the output is staged: more than was asked for at first is not there any more. */
function fillWhenStaged({ path }: SmallDisk): (phase: InputPhase) => void {
  return (phase) => {
    const { bavail, bsize } = statfsSync(path);
    if (phase === 'staged') writeFileSync(join(path, 'filler'), Buffer.alloc(bavail * bsize - 200_000));
  };
}

describe('packaging that does not get to its end', () => {
  test('is stopped with all its programs, and leaves nothing', async () => {
    const stop = new AbortController();
    const work = join(place, 'stopped');
    const stopWhenWriting = (bytesDone: number): void => {
      if (bytesDone > 0) stop.abort(new Error('stopped'));
    };
    const running = packageInput(fed, {}, { work, signal: stop.signal, progress: stopWhenWriting });
    await assert.rejects(running, /stopped/);
    assert.deepEqual([...leftIn(join(work, 'output')), ...leftIn(join(work, 'scratch'))], []);
    const folders = readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(folderOfProcess);
    assert.deepEqual(
      folders.filter((path) => path.startsWith(work)),
      [],
      'no program runs on',
    );
  });

  test('meets a disk that fills up, says so, and leaves nothing', async () => {
    const disk = await openSmallDisk(32 * 1024 * 1024);
    try {
      const outputFolder = join(disk.path, 'output');
      await assert.rejects(
        packageInput(direct, {}, { work: join(place, 'full'), outputFolder, reached: fillWhenStaged(disk) }),
        (error: unknown) =>
          error instanceof AppError && error.reason === 'OUTPUT_DISK_FILLED' && /disk is full/.test(error.message),
      );
      assert.deepEqual(leftIn(outputFolder), []);
    } finally {
      await disk.cleanUp();
    }
  });

  for (const full of ['scratch', 'output'] as const) {
    test(`and is signed meanwhile, meets a full ${full} disk, says so, and leaves nothing`, async () => {
      const disk = await openSmallDisk(32 * 1024 * 1024);
      try {
        const [work, outputFolder] =
          full === 'scratch'
            ? [join(disk.path, 'work'), join(place, 'beside-scratch')]
            : [join(place, 'beside-output'), join(disk.path, 'output')];
        const running = packageInput(direct, {}, { work, outputFolder, sign: true, reached: fillWhenStaged(disk) });
        const reason = full === 'scratch' ? 'SCRATCH_FULL' : 'OUTPUT_DISK_FILLED';
        await assert.rejects(running, (error: unknown) => error instanceof AppError && error.reason === reason);
        assert.deepEqual([...leftIn(outputFolder), ...leftIn(join(work, 'scratch'))], []);
      } finally {
        await disk.cleanUp();
      }
    });
  }
});

describe('packaging', () => {
  test('that is signed lets go of segments that were signed, and leaves nothing in scratch', async () => {
    const work = join(place, 'signed');
    let packagedBytes = -1;
    const reached = (phase: InputPhase): void => {
      if (phase === 'copied') packagedBytes = segmentBytesIn(join(work, 'scratch'));
    };
    const { outputPath } = await packageInput(direct, {}, { work, sign: true, reached });
    assert.equal(packagedBytes, 0);
    assert.ok(segmentBytesIn(outputPath) > 0);
    assert.deepEqual(leftIn(join(work, 'scratch')), []);
  });

  test('goes by way of scratch where the sink does not lie on this host', async () => {
    const work = join(place, 'elsewhere');
    const { outputPath } = await packageInput(
      direct,
      {},
      {
        work,
        sink: (local) => ({
          namingOf: (output) => local.namingOf(output),
          destinationOf: (...place) => local.destinationOf(...place),
          stageFile: (...staging) => local.stageFile(...staging),
          openFile: (destination) => local.openFile(destination),
          stageFolder: async (...staging) => withoutStagedPath(await local.stageFolder(...staging)),
        }),
      },
    );
    const packets = packetHashes(joinRendition(join(outputPath, 'video/h264_180p')));
    assert.deepEqual(packets, packetHashes(join(direct, 'film.mp4'), 'v:0'));
    assert.deepEqual(leftIn(join(work, 'scratch')), []);
  });

  test('tells how far it is', async () => {
    let last = 0;
    await packageInput(
      fed,
      {},
      {
        work: join(place, 'progress'),
        progress: (bytesDone, bytesTotal) => {
          assert.ok(bytesDone >= last && bytesDone <= bytesTotal);
          last = bytesDone;
        },
      },
    );
    assert.ok(last > 0);
  });
});

/** Returns the size of all segments below a folder together, in bytes. */
function segmentBytesIn(folder: string): number {
  const segments = leftIn(folder).filter((path) => path.endsWith('.m4s'));
  return segments.reduce((sum, path) => sum + statSync(join(folder, path)).size, 0);
}

/** A sink as one in a bucket is: nothing of it lies on this host. */
function withoutStagedPath(sink: FolderSink): FolderSink {
  return {
    destination: sink.destination,
    create: (...part) => sink.create(...part),
    seal: (signal) => sink.seal(signal),
    open: (...part) => sink.open(...part),
    commit: (signal) => sink.commit(signal),
    discard: () => sink.discard(),
  };
}

/** Returns the working folder of a process; programs of packaging work in the scratch space. */
function folderOfProcess(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return ''; // The process has ended since it was listed.
  }
}
