import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type WatchedEntry, WatchedFolder } from '../../src/cli/watched-folder.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { attestream, PROGRAM } from './run-attestream.ts';

const SAMPLES = fileURLToPath(new URL('../../samples/', import.meta.url));

function folders() {
  const above = temporaryFolder();
  const [folder, output] = [join(above, 'in'), join(above, 'out')];
  mkdirSync(folder);
  return { folder, output };
}

/** Opens a folder for a test, and returns how it looks seconds after its start. */
async function opened(t: TestContext, folder: string, output: string, replaces = false) {
  const watched = await WatchedFolder.open(folder, output, replaces);
  t.after(() => watched.close());
  const namesAt = (second: number) =>
    watched.look(second * 1000).map(({ path }) => path.slice(watched.path.length + 1));
  return { watched, namesAt };
}

/** Returns an entry that lies still. */
function stillEntry(watched: WatchedFolder): WatchedEntry {
  watched.look(0);
  const [entry] = watched.look(5_000);
  assert.ok(entry);
  return entry;
}

/** Makes an output of an entry, as the signature does. */
function makeOutput({ stagingFolder }: WatchedEntry): void {
  mkdirSync(stagingFolder, { recursive: true });
  writeFileSync(join(stagingFolder, 'a_c2pa.wav'), 'signed');
}

describe('a watched folder', () => {
  test('takes an entry that has not changed for five seconds', async (t) => {
    const { folder, output } = folders();
    const { namesAt } = await opened(t, folder, output);
    const file = join(folder, 'a.wav');
    writeFileSync(file, 'a');
    assert.deepEqual(namesAt(0), []);
    appendFileSync(file, 'b');
    assert.deepEqual(namesAt(4), []);
    assert.deepEqual(namesAt(8), []);
    assert.deepEqual(namesAt(9), ['a.wav']);
    mkdirSync(join(folder, 'film'));
    writeFileSync(join(folder, 'film', 'a.m4s'), 'a');
    namesAt(10);
    appendFileSync(join(folder, 'film', 'a.m4s'), 'b');
    assert.deepEqual(namesAt(15), ['a.wav']);
    assert.deepEqual(namesAt(20), ['a.wav', 'film']);
  });

  test('leaves hidden files, results and outputs alone', async (t) => {
    const { folder } = folders();
    for (const name of ['.a.wav.part', 'a_c2pa.wav']) writeFileSync(join(folder, name), 'a');
    const { namesAt } = await opened(t, folder, join(folder, 'out'));
    namesAt(0);
    assert.deepEqual(namesAt(5), []);
  });

  test('is refused of a file', async () => {
    const { folder, output } = folders();
    const file = join(folder, 'a.mp4');
    writeFileSync(file, 'a film');
    await assert.rejects(WatchedFolder.open(file, output, false), { reason: 'SOURCE_NOT_FOLDER' });
  });

  test('is refused to a second process, which a message names', async (t) => {
    const { folder, output } = folders();
    await opened(t, folder, output);
    await assert.rejects(WatchedFolder.open(folder, output, false), { reason: 'FOLDER_WATCHED' });
    const { code, stderr } = await attestream(['watch', folder, '--output', output]);
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`${process.pid}`));
  });

  test('goes on where a killed process had signed, and signs nothing twice', async (t) => {
    const { folder, output } = folders();
    writeFileSync(join(folder, 'a.wav'), 'a');
    const { watched } = await opened(t, folder, output);
    makeOutput(stillEntry(watched));
    assert.deepEqual(await watched.recover(), [join(output, 'a_c2pa.wav')]);
    assert.deepEqual(readdirSync(join(folder, 'done')), ['a.wav']);
    assert.equal(existsSync(join(folder, 'a.wav')), false);
    assert.deepEqual(readdirSync(watched.stagingRoot), []);
  });

  test('goes on where a killed process had moved the source, and forgets unfinished outputs', async (t) => {
    const { folder, output } = folders();
    writeFileSync(join(folder, 'a.wav'), 'a');
    const { watched } = await opened(t, folder, output);
    const entry = stillEntry(watched);
    makeOutput(entry);
    renameSync(entry.path, join(folder, 'done', 'a.wav'));
    mkdirSync(join(watched.stagingRoot, 'other'));
    writeFileSync(join(watched.stagingRoot, 'other', '.attestream-0.part'), 'half');
    assert.deepEqual(await watched.recover(), [join(output, 'a_c2pa.wav')]);
    assert.deepEqual(readdirSync(watched.stagingRoot), []);
  });

  test('replaces an output only where it is told to', async (t) => {
    const { folder, output } = folders();
    mkdirSync(output);
    writeFileSync(join(output, 'a_c2pa.wav'), 'of somebody else');
    writeFileSync(join(folder, 'a.wav'), 'a');
    const kept = await WatchedFolder.open(folder, output, false);
    const entry = stillEntry(kept);
    makeOutput(entry);
    await assert.rejects(kept.finish(entry), { reason: 'OUTPUT_EXISTS' });
    kept.close();
    const { watched } = await opened(t, folder, output, true);
    await watched.finish(entry);
    assert.equal(readFileSync(join(output, 'a_c2pa.wav'), 'utf8'), 'signed');
  });

  test('keeps all of one name that are done or failed', async (t) => {
    const { folder, output } = folders();
    const { watched } = await opened(t, folder, output);
    for (let round = 0; round < 2; round += 1) {
      writeFileSync(join(folder, 'a.wav'), String(round));
      await watched.fail(stillEntry(watched), 'REASON: text');
    }
    assert.deepEqual(readdirSync(join(folder, 'failed')).sort(), ['a (2).wav', 'a (2).wav.txt', 'a.wav', 'a.wav.txt']);
  });
});

test('attestream watch signs files and publications, and says why one failed', async (t) => {
  const { folder, output } = folders();
  cpSync(join(SAMPLES, 'four-notes.mp3'), join(folder, 'four-notes.mp3'));
  cpSync(join(SAMPLES, 'publication'), join(folder, 'film'), { recursive: true });
  writeFileSync(join(folder, 'junk.mp4'), 'no film');
  mkdirSync(join(folder, 'notes'));
  const home = temporaryFolder();
  const env = { ...process.env, XDG_STATE_HOME: join(home, 'state'), XDG_DATA_HOME: join(home, 'data') };
  const child = spawn(process.execPath, [PROGRAM, 'watch', folder, '--output', output], { env, stdio: 'ignore' });
  const exited = once(child, 'exit');
  t.after(() => child.kill('SIGKILL'));
  await until(
    async () => !['four-notes.mp3', 'film', 'junk.mp4', 'notes'].some((name) => existsSync(join(folder, name))),
  );
  child.kill('SIGINT');
  assert.deepEqual(await exited, [130, null]);
  assert.deepEqual(
    readdirSync(output)
      .filter((name) => !name.startsWith('.'))
      .sort(),
    ['film_c2pa', 'four-notes_c2pa.mp3'],
  );
  assert.deepEqual(readdirSync(join(folder, 'done')).sort(), ['film', 'four-notes.mp3']);
  assert.deepEqual(readdirSync(join(folder, 'failed')).sort(), ['junk.mp4', 'junk.mp4.txt', 'notes', 'notes.txt']);
  assert.match(readFileSync(join(folder, 'failed', 'junk.mp4.txt'), 'utf8'), /^[A-Z_]+: ./);
  assert.match(
    readFileSync(join(folder, 'failed', 'notes.txt'), 'utf8'),
    /Put the media files in it into the watched folder/,
  );
});
