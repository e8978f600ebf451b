import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { httpFolderOpener } from '#inputs/http/open-http-folder.ts';
import { InputResolver } from '#inputs/input-resolver.ts';
import { signFragmented, verify } from '#operations/registry.ts';
import { crawlPlaylists } from '#publications/read-publication.ts';
import { clientFor } from '../inputs/http-client-for-tests.ts';
import { filesAt, writeFiles } from '../support/publications/make-folder.ts';
import { makeFfmpegDash, makeFilm } from '../support/publications/make-publication.ts';
import { runInput } from '../support/run-input.ts';
import { sendFile, serve } from '../support/servers/http-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// Publications by the address of a playlist, on a server that lists no folder: all that the signature covers is asked for.

const home = temporaryFolder();
const made = filesAt(makeFfmpegDash(makeFilm(home), join(home, 'dash')));
const textOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? '').toString();
const RANGE = '#EXT-X-DATERANGE:ID="a",START-DATE="2020-01-01T00:00:00Z"';
const TAGS = `${RANGE},X-COM-EXAMPLE="a.json"\n${RANGE.replace('"a"', '"b"')},X-ASSET-URI="ad/spot.m3u8"\n`;
const EVENTS = '<EventStream schemeIdUri="urn:example"><Event>b.json</Event></EventStream>';
const source = writeFiles(join(home, 'show'), {
  ...made,
  'media_0.m3u8': textOf(made['media_0.m3u8']).replace('#EXTINF', `${TAGS}#EXTINF`),
  'manifest.mpd': textOf(made['manifest.mpd']).replace('<AdaptationSet', `${EVENTS}<AdaptationSet`),
  'a.json': '{}',
  'b.json': '{}',
  ...Object.fromEntries(Object.entries(made).map(([path, bytes]) => [`ad/${path.replace('master', 'spot')}`, bytes])),
});
const params = { playlist_pattern: '*.{m3u8,mpd}', init_pattern: 'init*', frag_pattern: 'chunk*' };
const input = { type: 'local_folder_path', path: source } as const;
const signed = filesAt((await runInput(signFragmented, { input, params }, temporaryFolder())).outputPath);

for (const [playlist, covered] of [
  ['master.m3u8', ['a.json', 'ad/media_1.m3u8']],
  ['manifest.mpd', ['b.json']],
] as const) {
  test(`a publication is compared by the address of ${playlist}`, async (t) => {
    let files = signed;
    const { base } = await serve(t, (request, response) => {
      const content = files[(request.url ?? '').replace('/show/', '')];
      if (content === undefined) return void response.writeHead(404).end();
      sendFile(request, response, { content: Buffer.from(content) });
    });
    const opener = httpFolderOpener(clientFor(t), { maxFiles: 1000, maxBytes: 1e12, maxDepth: 3 }, crawlPlaylists);
    const services = { inputs: new InputResolver({}, { remote_folder_url: opener }) };
    const presentationOf = async (): Promise<string | undefined> => {
      const asked = { input: { type: 'remote_folder_url', url: `${base}/show/${playlist}` }, params: {} } as const;
      return (await runInput(verify, asked, temporaryFolder(), { services })).verification.publication?.presentation;
    };
    assert.equal(await presentationOf(), 'as_signed');
    for (const path of covered) {
      files = { ...signed, [path]: Buffer.from(`${textOf(signed[path])}\n`) };
      assert.equal(await presentationOf(), 'changed', path);
    }
  });
}
