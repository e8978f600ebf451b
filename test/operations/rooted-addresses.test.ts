import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Verification } from '#contract/verification.ts';
import { httpFolderOpener } from '#inputs/http/open-http-folder.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import type { Operation, OperationOutcome } from '#operations/operation.ts';
import { signFragmented, verify } from '#operations/registry.ts';
import { crawlPlaylists } from '#publications/read-publication.ts';
import { clientFor } from '../inputs/http-client-for-tests.ts';
import { filesAt } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { runInput } from '../support/run-input.ts';
import { sendFile, serve } from '../support/servers/http-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// Publications whose addresses begin with the root of their server, or with its name: the signature covers what they name, too.

const LIMITS = { maxFiles: 1000, maxBytes: 1e12, maxDepth: 3 };
const params = { playlist_pattern: '*.{m3u8,mpd}', init_pattern: 'init*', frag_pattern: 'chunk*' };
const home = temporaryFolder();
const made = filesAt(makeFfmpegDash(makeFilm(home), join(home, 'dash')));
const TEXT = 'WEBVTT\n\n00:00.000 --> 00:06.000\nHello\n';

/** Returns the publication with subtitles, all addresses of HLS and the base address of the MPD below `root`. */
function below(root: string): Record<string, string | Uint8Array> {
  const media = '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="en",URI="text.m3u8"\n#EXT-X-STREAM-INF';
  const texts = {
    ...made,
    'master.m3u8': String(Buffer.from(made['master.m3u8'] ?? '')).replace('#EXT-X-STREAM-INF', media),
    'text.m3u8': '#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXTINF:6,\ntext.vtt\n#EXT-X-ENDLIST\n',
    'text.vtt': TEXT,
  };
  return Object.fromEntries(
    Object.entries(texts).map(([path, content]) => {
      const text = path.endsWith('.m3u8') ? String(Buffer.from(content)) : null;
      if (path.endsWith('.mpd'))
        return [path, String(Buffer.from(content)).replace('<Period', `<BaseURL>${root}</BaseURL><Period`)];
      return [path, text?.replace(/^(?=[^#\n])|(?<=URI=")/gm, root) ?? content];
    }),
  );
}

/** Signs a publication over HTTP, and returns a function that verifies it at its address, with other files in place of some. */
async function signed(t: TestContext, rootOf: (base: string) => string) {
  let files: Record<string, string | Uint8Array> = {};
  const { base } = await serve(t, (request, response) => {
    const path = (request.url ?? '').replace('/show/', '');
    const listing = Object.entries(files).map(([name, content]) => ({ name, type: 'file', size: content.length }));
    const content = path === '' ? JSON.stringify(listing) : files[path];
    if (content === undefined) return void response.writeHead(404).end();
    const headers = path === '' ? { 'content-type': 'application/json' } : {};
    sendFile(request, response, { content: Buffer.from(content as string), headers });
  });
  const opener = httpFolderOpener(clientFor(t), LIMITS, crawlPlaylists);
  const services = { inputs: new InputResolver({}, { remote_folder_url: opener }) };
  const input = { type: 'remote_folder_url', url: `${base}/show/` } as const;
  const run = <Outcome extends OperationOutcome>(operation: Operation<Outcome>, asked: object): Promise<Outcome> =>
    runInput(operation, { input, params: asked }, temporaryFolder(), { services });
  files = below(rootOf(base));
  const output = filesAt((await run(signFragmented, params)).outputPath);
  return async (changed: (output: Readonly<Record<string, Uint8Array>>) => object): Promise<Verification> => {
    files = { ...output, ...changed(output) };
    return (await run(verify, {})).verification;
  };
}

for (const [name, rootOf] of [
  ['begin with the root of the server', () => '/show/'],
  ['begin with the name of the server', (base: string) => `${base}/show/`],
] as const) {
  test(`a publication whose addresses ${name} is changed with its text`, async (t) => {
    const verified = await signed(t, rootOf);
    const { state, publication } = await verified(() => ({}));
    assert.deepEqual([state, publication?.presentation], ['valid', 'as_signed'], JSON.stringify(publication));
    const other = await verified(() => ({ 'text.vtt': TEXT.replace('Hello', 'Other') }));
    assert.equal(other.publication?.presentation, 'changed');
    assert.deepEqual(
      other.publication.first.map(({ part, file }) => [part, file]),
      [['files', 'text.m3u8']],
    );
  });
}
