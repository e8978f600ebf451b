import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { httpFolderOpener } from '#inputs/http/open-http-folder.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import type { Operation, OperationOutcome } from '#operations/operation.ts';
import { packageAndSign, packageWithoutSigning, signFragmented, verify } from '#operations/registry.ts';
import { crawlPlaylists } from '#publications/read-publication.ts';
import { clientFor } from '../inputs/http-client-for-tests.ts';
import { filesAt } from '../support/publications/make-folder.ts';
import { makeFfmpegHls, makeFilm } from '../support/publications/make-publication.ts';
import { runInput } from '../support/run-input.ts';
import { sendFile, serve } from '../support/servers/http-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// A server may answer each request for a playlist with another text: one text decides, and it is the one that is written and hashed.

const home = temporaryFolder();
const LIMITS = { maxFiles: 1000, maxBytes: 1e12, maxDepth: 3 };
const params = { playlist_pattern: '*.m3u8', init_pattern: 'init*', frag_pattern: '*.m4s' };
const made = makeFfmpegHls(makeFilm(home), join(home, 'talk'));
const input = { type: 'local_folder_path', path: made } as const;
const { outputPath } = await runInput(signFragmented, { input, params }, join(home, 'signed'));
const signed = Object.fromEntries(
  Object.entries(filesAt(outputPath)).map(([path, bytes]) => [path, Buffer.from(bytes)]),
);
const playlists = Object.keys(signed).filter((path) => path.endsWith('.m3u8'));
/** A playlist that none names and no pattern matches is copied. */
const COPIED = 'other.m3u';
const LIST = '#EXTM3U\n#EXTINF:60,Song\nsong.wav\n';

/** Answers each request for a file, counted from one. */
type Answers = (path: string, request: number) => Buffer | undefined;

/** Serves a listed folder, and runs an operation on it. Returns its outcome, and how often each playlist was asked for. */
async function run<Outcome extends OperationOutcome>(
  t: TestContext,
  operation: Operation<Outcome>,
  { asked = {}, address = '', files = signed, answers = (path) => files[path] }: Served = {},
) {
  const counts = new Map<string, number>();
  const { base } = await serve(t, (request, response) => {
    const path = (request.url ?? '').replace('/talk/', '');
    const listing = Object.entries(files).map(([name, { length }]) => ({ name, type: 'file', size: length }));
    const isListing = path === '';
    const isProbe = request.headers.range === 'bytes=0-0';
    if (!isListing && !isProbe) counts.set(path, (counts.get(path) ?? 0) + 1);
    const content = isListing ? Buffer.from(JSON.stringify(listing)) : answers(path, counts.get(path) ?? 1);
    if (content === undefined) return void response.writeHead(404).end();
    sendFile(request, response, { content, headers: isListing ? { 'content-type': 'application/json' } : {} });
  });
  const opener = httpFolderOpener(clientFor(t), LIMITS, crawlPlaylists);
  const outcome = await runInput(
    operation,
    { input: { type: 'remote_folder_url', url: `${base}/talk/${address}` }, params: asked },
    temporaryFolder(),
    { services: { inputs: new InputResolver({}, { remote_folder_url: opener }) } },
  );
  return { outcome, counts: Object.fromEntries([...counts].filter(([path]) => /\.m3u8?$/.test(path)).sort()) };
}

interface Served {
  readonly asked?: unknown;
  readonly address?: string;
  readonly files?: Readonly<Record<string, Buffer>>;
  readonly answers?: Answers;
}

const once = (paths: readonly string[]) => Object.fromEntries(paths.toSorted().map((path) => [path, 1]));

describe('asks once for each playlist', () => {
  const cases: readonly [string, Operation<OperationOutcome>, unknown][] = [
    ['verify', verify, {}],
    ['c2pa/fragmented', signFragmented, params],
    ['c2pa/package', packageAndSign, {}],
    ['package, which copies', packageWithoutSigning, { existing: 'copy' }],
    ['c2pa/package, which packages anew', packageAndSign, { existing: 'repackage' }],
  ];
  for (const [what, operation, asked] of cases) {
    test(`of a listed folder: ${what}`, async (t) => {
      const files = { ...signed, [COPIED]: Buffer.from(LIST) };
      const { counts } = await run(t, operation, { asked, files });
      const { [COPIED]: ofCopied = 0, ...others } = counts;
      assert.deepEqual(others, once(playlists));
      assert.ok(ofCopied <= 1, String(ofCopied));
    });
    test(`of a folder that is read by a playlist: ${what}`, async (t) => {
      const { counts } = await run(t, operation, { asked, address: 'master.m3u8' });
      assert.deepEqual(counts, once(playlists));
    });
  }
});

describe('goes by the first answer', () => {
  const at = playlists.find((path) => path !== 'master.m3u8') as string;
  const text = String(signed[at]);
  /** The same number of bytes, and another fragment in the place of one. */
  const other = Buffer.from(text.replace(/_1\.m4s/, '_2.m4s'));
  const alternating =
    (first: Buffer, later: Buffer, name = at): Answers =>
    (path, request) =>
      path !== name ? signed[path] : request === 1 ? first : later;

  test('of a playlist that is verified', async (t) => {
    const verdicts = [];
    for (const [first, later] of [
      [signed[at] as Buffer, other],
      [other, signed[at] as Buffer],
    ] as const) {
      const { outcome } = await run(t, verify, { answers: alternating(first, later) });
      verdicts.push(outcome.verification.state);
    }
    assert.deepEqual(verdicts, ['valid', 'invalid']);
  });

  test('of a playlist that is signed', async (t) => {
    const { outcome } = await run(t, signFragmented, {
      asked: params,
      answers: alternating(signed[at] as Buffer, other),
    });
    assert.equal(readFileSync(join(outcome.outputPath, at), 'utf8'), text);
    assert.deepEqual(outcome.warnings, []);
  });

  test('of a file that is copied because no player takes it for a playlist', async (t) => {
    const [first, later] = [Buffer.from('No playlist.'), Buffer.from('#EXTM3U\n#XY\n')];
    assert.equal(first.length, later.length);
    const files: typeof signed = { ...signed, [COPIED]: first };
    const answers: Answers = (path, request) => (path !== COPIED ? files[path] : request === 1 ? first : later);
    const { outcome } = await run(t, signFragmented, { asked: params, files, answers });
    assert.equal(readFileSync(join(outcome.outputPath, COPIED), 'utf8'), String(first));
  });
});
