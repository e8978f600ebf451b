import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { RELEASE } from '#config/release.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { ended, stallingFilm, Workplace } from './run-program.ts';

describe('the program attestream', { concurrency: 2 }, () => {
  test('signs files beside their sources by what their bytes are, and verifies them', async () => {
    const place = new Workplace();
    cpSync(place.path('four-notes.mp3'), place.path('*.bin'));
    const signed = await place.run('sign', 'evening-light.mp4', '*.bin');
    assert.equal(signed.code, 0, signed.stderr);
    assert.match(signed.stderr, new RegExp(`development identity ${place.dataFolder}`));
    assert.equal(statSync(place.dataFolder).mode & 0o777, 0o700);
    await assertValid(readFileSync(place.path('evening-light_c2pa.mp4')), 'video/mp4');
    await assertValid(readFileSync(place.path('*_c2pa.mp3')), 'audio/mpeg');
    assert.deepEqual(readdirSync(place.stateFolder), []);

    const verified = await place.run('verify', 'evening-light_c2pa.mp4');
    assert.equal(verified.code, 0, verified.stderr);
    assert.match(verified.stdout, /^evening-light_c2pa\.mp4: valid\. Unchanged since signing\./);
    assert.equal((await place.run('verify', 'evening-light_c2pa.mp4', 'evening-light.mp4')).code, 3);
  });

  test('signs a publication beside its folder, and names the rendition and the second that were altered', async () => {
    const place = new Workplace();
    const signed = await place.run('sign', 'publication/master.m3u8');
    assert.equal(signed.code, 0, signed.stderr);
    assert.equal(signed.stdout, `publication: signed as ${place.path('publication_c2pa')}\n`);
    const fragment = place.path('publication_c2pa/fragment-0-2.m4s');
    const bytes = readFileSync(fragment);
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 9) ^ 1, bytes.length - 9);
    writeFileSync(fragment, bytes);
    const verified = await place.run('verify', 'publication_c2pa/master.m3u8', '--report', 'report.json');
    assert.equal(verified.code, 3, verified.stderr);
    assert.match(verified.stdout, /^publication_c2pa: invalid\. .*init-0\.mp4.* \d/);
    const [entry] = JSON.parse(readFileSync(place.path('report.json'), 'utf8'));
    assert.equal(entry.verification.publication.first[0].kind, 'altered');
  });

  test('refuses to replace an output without --force, and fails for a path with nothing at it', async () => {
    const place = new Workplace();
    writeFileSync(place.path('four-notes_c2pa.mp3'), 'mine');
    const [refused, forced] = [
      await place.run('sign', 'four-notes.mp3', 'nothing.mp4', 'four-notes_c2pa.mp3', '--json'),
      await place.run('sign', 'four-notes.mp3', '--force'),
    ];
    const entries = entriesIn(refused.stdout);
    assert.deepEqual(
      entries.map(({ input_index, status, error_details }) => [input_index, status, error_details?.reason]).sort(),
      [
        [0, 'failed', 'OUTPUT_EXISTS'],
        [1, 'failed', 'SOURCE_NOT_FOUND'],
      ],
    );
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /four-notes_c2pa\.mp3: left out/);
    assert.equal(forced.code, 0, forced.stderr);
  });

  test('tells problems in words of the command, not of requests', async () => {
    const place = new Workplace();
    writeFileSync(place.path('notes.mkv'), Buffer.from('1a45dfa3', 'hex'));
    writeFileSync(place.path('junk.mp3'), 'no music');
    cpSync(place.path('evening-light.mp4'), place.path('film.mp3'));
    const { stderr } = await place.run('sign', 'notes.mkv', 'junk.mp3', 'film.mp3');
    assert.match(stderr, /notes\.mkv: .*Use attestream sign --sidecar/);
    assert.match(stderr, /junk\.mp3: .*none of the containers/);
    assert.match(stderr, /film\.mp3: .*holds a video track/);
    assert.doesNotMatch(stderr, /endpoint|params/);
    const [entry] = entriesIn((await place.run('sign', 'notes.mkv', '--json')).stdout);
    assert.match(entry?.error ?? '', /Use attestream sign --sidecar/);
    const unknown = await place.run('sign', '--ouput', 'out', 'four-notes.mp3');
    assert.match(unknown.stderr, /--output\?\)\n.*--help/);
  });

  test('takes media files of folders with --recursive and paths from standard input, and follows no links', async () => {
    const place = new Workplace();
    mkdirSync(place.path('films/deep'), { recursive: true });
    cpSync(place.path('evening-light.mp4'), place.path('films/deep/a.mp4'));
    symlinkSync(place.path('four-notes.mp3'), place.path('films/link.mp3'));
    writeFileSync(place.path('films/notes.txt'), 'no media');
    const refused = await place.runWith(['films', 'films/link.mp3'], 'sign', '-', '--json');
    assert.deepEqual(
      entriesIn(refused.stdout).map(({ error_details }) => error_details?.reason),
      ['FOLDER_WITHOUT_PLAYLISTS', 'SOURCE_IS_LINK'],
    );
    const signed = await place.run('sign', 'films', '--recursive', '--output', 'out', '--json');
    assert.equal(signed.code, 0, signed.stderr);
    assert.match(signed.stderr, /^2 entries of folders were left out, the first of them films\/link\.mp3: /m);
    assert.deepEqual(
      entriesIn(signed.stdout).map(({ input_path, output_path }) => [input_path, output_path]),
      [['films/deep/a.mp4', place.path('out/a_c2pa.mp4')]],
    );
    assert.deepEqual(readdirSync(place.path('out')), ['a_c2pa.mp4']);
  });

  test('packages a folder and signs the publication', async () => {
    const place = new Workplace();
    mkdirSync(place.path('film'));
    cpSync(place.path('evening-light.mp4'), place.path('film/evening-light.mp4'));
    const packaged = await place.run('package', 'film', '--sign');
    assert.equal(packaged.code, 0, packaged.stderr);
    assert.ok(existsSync(place.path('film_c2pa/master.m3u8')));
    assert.equal((await place.run('verify', 'film_c2pa', '--quiet')).code, 0);
  });

  test('never reads its own key', async () => {
    const place = new Workplace();
    await place.run('sign', 'four-notes.mp3');
    const key = join(place.dataFolder, 'identity/development-identity.pem');
    const signed = await place.run('sign', '--sidecar', key, '--output', '.', '--json');
    assert.equal(signed.code, 1);
    assert.equal(entriesIn(signed.stdout)[0]?.error_details?.reason, 'SOURCE_PROTECTED');
  });

  test('removes what it has staged when it is interrupted', async (t) => {
    const place = new Workplace();
    const { address, asked } = await stallingFilm(t);
    const child = place.start('sign', address, '--output', 'out');
    const end = ended(child);
    await asked;
    assert.equal(readdirSync(place.path('out')).length, 1);
    child.kill('SIGINT');
    assert.equal((await end).code, 130);
    assert.deepEqual(readdirSync(place.path('out')), []);
    assert.deepEqual(readdirSync(place.stateFolder), []);
  });

  test('ends quietly when its output is closed', async () => {
    const child = new Workplace().start('verify', 'four-notes.mp3', 'evening-light.mp4');
    child.stdout?.destroy();
    assert.ok(child.stderr !== null);
    const [stderr, [code, signal]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    assert.deepEqual([stderr, code, signal], ['', 3, null]);
  });

  test('fails for paths with nothing at them before it starts anything', async () => {
    const place = new Workplace();
    const { code, stderr } = await place.run('sign', 'nothing.mp4', 'ftp://example.com/a.mp4', '--output', 'out');
    assert.equal(code, 1);
    assert.match(stderr, /nothing at "nothing\.mp4"\. Check the path\.\n/);
    assert.match(stderr, /ftp:\/\/example\.com\/a\.mp4: .*https?/);
    assert.equal(existsSync(place.stateFolder), false);
  });

  test('tells that it tries an address again at which nothing answers', async () => {
    const child = new Workplace().start('verify', 'http://127.0.0.1:9/film.mp4');
    const end = ended(child);
    assert.ok(child.stderr !== null);
    for await (const line of createInterface({ input: child.stderr })) {
      if (!line.includes('Trying again in ')) continue;
      child.kill('SIGINT');
      break;
    }
    assert.equal((await end).code, 130);
  });

  test('names the sidecar that a verdict rests on, which may be that of another file', async () => {
    const place = new Workplace();
    const sidecar = await place.run('sign', 'four-notes.mp3', '--sidecar');
    assert.equal(sidecar.code, 0, sidecar.stderr);
    const verified = await place.run('verify', 'four-notes.mp3');
    assert.match(verified.stdout, /manifest is in the sidecar four-notes\.c2pa/);
  });

  test('tells without doing anything what it would do', async () => {
    const place = new Workplace();
    const { code, stdout } = await place.run('sign', 'four-notes.mp3', '--dry-run');
    assert.deepEqual([code, stdout], [0, `four-notes.mp3: c2pa-audio, into ${place.folder}\n`]);
    assert.equal(existsSync(place.stateFolder), false);
  });

  test('says its version', async () => {
    assert.equal((await new Workplace().run('--version')).stdout, `${RELEASE.version}\n`);
  });

  const misuses: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['an unknown command', ['sing', 'a.mp4'], /Did you mean sign\?/],
    ['an unknown option', ['verify', '--reprot', 'x', 'a.mp4'], /Did you mean --report\?/],
    [
      'a certificate without its key',
      ['sign', 'four-notes.mp3', '--certificate', 'a.pem'],
      /- --certificate: .*together/,
    ],
    ['an authority that is none', ['sign', 'four-notes.mp3', '--tsa', 'x'], /- --tsa: /],
    ['an address for outputs', ['sign', 'four-notes.mp3', '--output', 's3://bucket/x'], /--output.*not an address/],
    ['an address for packages', ['package', 'publication', '--output', 'https://example.com'], /not an address/],
    ['an address for what is watched', ['watch', '.', '--output', 'S3://bucket/x'], /not an address/],
    ['an address for a report', ['verify', 'four-notes.mp3', '--report', 's3://bucket/x'], /not an address/],
    ['a key that nothing is signed with', ['package', 'publication', '--key', 'k.pem'], /--key needs --sign/],
    ['assertions that are no list', ['sign', 'four-notes.mp3', '--assertions', 'four-notes.mp3'], /four-notes\.mp3/],
    [
      'an unknown source type',
      ['sign', 'four-notes.mp3', '--digital-source-type', 'x'],
      /"--digital-source-type" must/,
    ],
    ['a folder of outputs that cannot be made', ['sign', 'four-notes.mp3', '--output', '/proc/x'], /\/proc\/x/],
    ['a trust list that is none', ['verify', 'four-notes.mp3', '--trust', 'four-notes.mp3'], /four-notes\.mp3/],
  ];
  for (const [misuse, args, told] of misuses) {
    test(`exits with 2 for ${misuse}`, async () => {
      const { code, stderr, stdout } = await new Workplace().run(...args);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, told);
    });
  }
});

interface Entry {
  readonly input_index: number;
  readonly input_path: string;
  readonly status: string;
  readonly output_path?: string;
  readonly error?: string;
  readonly error_details?: { readonly reason: string };
}

function entriesIn(stdout: string): readonly Entry[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
