import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { readRange } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { httpFolderOpener } from '#inputs/http/open-http-folder.ts';
import type { FolderLimits } from '#inputs/input-opener.ts';
import { crawlPlaylists } from '#publications/read-publication.ts';
import { sourceFolderContract } from '../bytes/source-folder-contract.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { type FileServer, LISTING_SERVERS } from '../support/servers/file-server.ts';
import { sendFile, serve } from '../support/servers/http-server.ts';
import { startNginx } from '../support/servers/nginx.ts';
import { clientFor, newClient, newScratch, scratchFor } from './http-client-for-tests.ts';
import { speak } from './speaking-server.ts';

const never = new AbortController().signal;
const roomy: FolderLimits = { maxFiles: 1000, maxBytes: 1024 ** 3, maxDepth: 3 };

for (const [place, what] of [
  ['html', 'HTML'],
  ['rounded', 'HTML with rounded sizes'],
  ['json', 'JSON'],
  ['no-ranges', 'HTML, its files without ranges'],
] as const) {
  sourceFolderContract(`a folder that nginx lists as ${what}`, (files) => openServed(startNginx, `/${place}/`, files));
}

for (const [what, start] of Object.entries(LISTING_SERVERS)) {
  test(`a folder that ${what} lists has all files, whatever they are called`, async () => {
    const files = { 'a%20b é&"c.m4s': 'twelve bytes', "q'uote#hash?;.mp4": 'f'.repeat(2049), 'a & b/<x>.m4s': '' };
    const { folder, cleanUp } = await openServed(start, '/', files);
    try {
      const sizes = Object.fromEntries(folder.files.map(({ path, sizeBytes }) => [path, sizeBytes]));
      assert.deepEqual(sizes, { 'a%20b é&"c.m4s': 12, "q'uote#hash?;.mp4": 2049, 'a & b/<x>.m4s': 0 });
      for (const [path, content] of Object.entries(files)) assert.equal(await contentOf(folder, path), content);
    } finally {
      await cleanUp();
    }
  });
}

/** As Apache lists a folder with FancyIndexing and HTMLTable (the default of Debian), its links and its rounded sizes. */
const APACHE_PAGE = `<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
<html><head><title>Index of /talk</title></head><body><h1>Index of /talk</h1><table>
<tr><th valign="top"><img src="/icons/blank.gif" alt="[ICO]"></th><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th><th><a href="?C=S;O=A">Size</a></th></tr>
<tr><td valign="top"><img src="/icons/back.gif" alt="[PARENTDIR]"></td><td><a href="/">Parent Directory</a></td><td>&nbsp;</td><td align="right">  - </td><td>&nbsp;</td></tr>
<tr><td valign="top"><a href="a%20%26%20b.m4s"><img src="/icons/unknown.gif" alt="[   ]"></a></td><td><a href="a%20%26%20b.m4s">a &amp; b.m4s</a></td><td align="right">2026-11-21 15:00  </td><td align="right"> 12 </td><td>&nbsp;</td></tr>
<tr><td valign="top"><img src="/icons/movie.gif" alt="[VID]"></td><td><a href="film.mp4">film.mp4</a></td><td align="right">2026-11-21 15:00  </td><td align="right">2.0K</td><td>&nbsp;</td></tr>
<tr><td valign="top"><img src="/icons/folder.gif" alt="[DIR]"></td><td><a href="deep/">deep/</a></td><td align="right">2026-11-21 15:00  </td><td align="right">  - </td><td>&nbsp;</td></tr>
</table><address>Apache/2.4.62 (Debian) Server at localhost Port 80</address></body></html>`;

describe('a folder over HTTP', () => {
  test('is read from what Apache lists, sizes asked for where they are rounded', async (t) => {
    const files: Record<string, string> = {
      '/talk/': APACHE_PAGE,
      '/talk/deep/':
        '<title>Index of /talk/deep</title><a href="../">../</a><pre><a href="c.vtt">c.vtt</a> 21-Nov-2026 15:00  1</pre>',
      '/talk/a%20%26%20b.m4s': 'twelve bytes',
      '/talk/film.mp4': 'f'.repeat(2049),
      '/talk/deep/c.vtt': 'c',
    };
    const { folder, paths } = await open(t, files, '/talk/');
    assert.deepEqual(
      folder.files.map(({ path, sizeBytes }) => [path, sizeBytes]),
      [
        ['a & b.m4s', 12],
        ['deep/c.vtt', 1],
        ['film.mp4', 2049],
      ],
    );
    assert.deepEqual(paths, ['/talk/', '/talk/deep/', '/talk/film.mp4']);
    assert.equal(folder.name, 'talk');
  });

  const publication = {
    '/a/talk/master.m3u8':
      '#EXTM3U\n#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="skd://key"\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="audio/index.m3u8?token=1"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\nvideo/index.m3u8\n',
    '/a/talk/video/index.m3u8':
      '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI="../key.bin"\n#EXT-X-MAP:URI="init.mp4"\n#EXTINF:2,\ns%201.m4s\n#EXTINF:2,\ns2.m4s?part=2\n#EXT-X-ENDLIST\n',
    '/a/talk/audio/index.m3u8?token=1':
      '#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI="init.mp4"\n#EXTINF:2,\ns1.m4s\n#EXT-X-ENDLIST\n',
    '/a/talk/video/init.mp4': 'init',
    '/a/talk/video/s%201.m4s': 's1',
    '/a/talk/video/s2.m4s?part=2': 's2',
    '/a/talk/audio/init.mp4': 'audio init',
    '/a/talk/audio/s1.m4s': 'audio s1',
    '/a/talk/key.bin': 'key',
    '/a/talk/unnamed.txt': 'nobody names me',
  };
  const named = [
    'audio/index.m3u8',
    'audio/init.mp4',
    'audio/s1.m4s',
    'key.bin',
    'master.m3u8',
    'video/index.m3u8',
    'video/init.mp4',
    'video/s 1.m4s',
    'video/s2.m4s',
  ];

  test('is what a playlist refers to, each file fetched by the address that was given for it', async (t) => {
    const { folder } = await open(t, publication, '/a/talk/master.m3u8');
    assert.equal(folder.name, 'talk');
    assert.deepEqual(paths(folder), named);
    const contents = await Promise.all(
      ['video/s 1.m4s', 'video/s2.m4s', 'audio/s1.m4s'].map((path) => contentOf(folder, path)),
    );
    assert.deepEqual(contents, ['s1', 's2', 'audio s1']);
  });

  test('is what the playlist refers to that a literal pattern names under the address', async (t) => {
    for (const [url, pattern, name] of [
      ['/a/talk/', 'master.m3u8', 'talk'],
      ['/a/talk', './master.m3u8', 'talk'],
      ['/a', 'talk/master.m3u8', 'a'],
    ] as const) {
      const { folder } = await open(t, publication, url, { playlistPattern: pattern });
      const prefix = url === '/a' ? 'talk/' : '';
      assert.deepEqual(
        paths(folder),
        named.map((path) => prefix + path),
      );
      assert.equal(folder.name, name);
    }
  });

  test('is what an MPD addresses; a last segment that rounding made up may be missing', async (t) => {
    const mpd = `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT5S"><Period><AdaptationSet mimeType="video/mp4"><SegmentTemplate initialization="init.mp4" media="$Number$.m4s" duration="2" startNumber="1"/><Representation id="v" bandwidth="1"/></AdaptationSet></Period></MPD>`;
    const files = { '/talk/manifest?id=1': mpd, '/talk/init.mp4': 'i', '/talk/1.m4s': '1', '/talk/2.m4s': '2' };
    // Some servers refuse what they do not have.
    for (const absentStatus of [404, 403, 400, 405]) {
      const { folder } = await open(t, files, '/talk/manifest?id=1', { absentStatus });
      assert.deepEqual(paths(folder), ['1.m4s', '2.m4s', 'init.mp4', 'manifest']);
    }
    // Players may count one segment more than there should be.
    const beside = { ...files, '/talk/0.m4s': '0', '/talk/4.m4s': '4', '/talk/5.m4s': '5' };
    const { folder } = await open(t, beside, '/talk/manifest?id=1');
    assert.deepEqual(paths(folder), ['0.m4s', '1.m4s', '2.m4s', '4.m4s', 'init.mp4', 'manifest']);
    const { '/talk/1.m4s': _, ...others } = files;
    const opening = open(t, others, '/talk/manifest?id=1', { absentStatus: 403 });
    await assert.rejects(opening, { reason: 'HTTP_FORBIDDEN' });
  });

  test('keeps the query of its own address for what the server lists', async (t) => {
    const { folder } = await open(
      t,
      { '/talk/?sig=x': '[{"name":"a.mp4","type":"file","size":1}]', '/talk/a.mp4?sig=x': 'a' },
      '/talk/?sig=x',
    );
    assert.equal(await contentOf(folder, 'a.mp4'), 'a');
    assert.equal(folder.baseUrl?.includes('sig'), false);
  });

  test('follows its address to where it was redirected, and calls the playlist what it was asked for by', async (t) => {
    const files = {
      '/cdn/x/v1.m3u8': '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow.m3u8\n',
      '/cdn/x/low.m3u8': '#EXTM3U\n',
    };
    const { folder } = await open(t, files, '/talk/master.m3u8', {
      redirects: { '/talk/master.m3u8': '/cdn/x/v1.m3u8' },
    });
    assert.deepEqual(paths(folder), ['low.m3u8', 'master.m3u8']);
    assert.equal(folder.name, 'talk');
  });

  test('is refused where nothing says what is in it', async (t) => {
    const page = '<html><title>My films</title><a href="a.mp4">a</a></html>';
    await refuses(t, 'FOLDER_NOT_LISTED', { '/talk/': page });
    await refuses(t, 'HTTP_NOT_FOUND', {});
    await refuses(t, 'FOLDER_NOT_LISTED', { '/talk/': '<!---->'.repeat(500) });
    await refuses(t, 'HTTP_NOT_FOUND', { '/talk/': page }, { playlistPattern: 'master.m3u8' });
    await refuses(t, 'FOLDER_EMPTY', { '/talk/': '[]' });
    await refuses(t, 'FOLDER_EMPTY', { '/talk/': '<title>Index of /talk</title><a href="../">../</a>' });
  });

  test('is not asked for a playlist where its address is that of one, and something else is there', async (t) => {
    for (const name of ['a.m3u8', 'a.mpd', 'A.M3U']) {
      const opening = open(t, { [`/talk/${name}`]: '<title>Gone</title>' }, `/talk/${name}`);
      await assert.rejects(opening, { reason: 'HTTP_ANSWER_INVALID' }, name);
    }
  });

  test('is told from one that may not be read where the server shows files alone, as nginx does', async (t) => {
    const root = await mkdtemp(join(tmpdir(), 'attestream-http-folder-'));
    t.after(() => rm(root, { recursive: true }));
    writeFiles(root, { 'talk/a.mp4': Buffer.from('a') });
    const nginx = await startNginx(root);
    t.after(() => nginx.stop());
    const opener = httpFolderOpener(clientFor(t), roomy, crawlPlaylists);
    const { scratch } = await scratchFor(t);
    for (const [address, reason] of [
      ['/plain/talk/', 'FOLDER_NOT_LISTED'],
      ['/plain/talk', 'FOLDER_NOT_LISTED'],
      ['/plain/talk/?signature=other', 'HTTP_FORBIDDEN'],
      ['/plain/nothing/', 'HTTP_NOT_FOUND'],
    ]) {
      const url = `${nginx.base}${address}`;
      const opening = opener({ type: 'remote_folder_url', url }, 0, { signal: never, scratch });
      await assert.rejects(opening, { reason }, address);
    }
  });

  test('never takes what lies elsewhere, however it is named', async (t) => {
    const page = (references: string[]) =>
      `<title>Index of /talk</title>${references.map((href) => `<a href="${href}">x</a>`).join('')}`;
    const elsewhere = ['../b.mp4', '/b.mp4', 'http://169.254.169.254/b.mp4', '//b.invalid/b.mp4', 'a/../../b.mp4'];
    const { folder } = await open(t, { '/talk/': page([...elsewhere, 'a.mp4']), '/talk/a.mp4': 'a' }, '/talk/');
    assert.deepEqual(paths(folder), ['a.mp4']);

    for (const name of ['..%2Fb.mp4', 'a%2Fb.mp4', 'a%5Cb.mp4', 'a%00.mp4', '..%2F', '%0A']) {
      await refuses(t, 'FOLDER_ENTRY_REFUSED', { '/talk/': page([name]) });
    }
    for (const name of ['../b.mp4', '..', '', 'a/b', 'a\\b', 'a\u0000b', 'x'.repeat(256)]) {
      await refuses(t, 'FOLDER_ENTRY_REFUSED', { '/talk/': JSON.stringify([{ name, type: 'file', size: 1 }]) });
      await refuses(t, 'FOLDER_ENTRY_REFUSED', { '/talk/': JSON.stringify([{ name, type: 'directory' }]) });
    }
    const playlist = (uri: string) => `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n${uri}\n`;
    for (const uri of ['../b.m3u8', 'http://169.254.169.254/b.m3u8', '/b.m3u8']) {
      await refuses(t, 'PLAYLIST_LEAVES_FOLDER', { '/talk/': playlist(uri) });
    }
    await refuses(t, 'FOLDER_ENTRY_REFUSED', { '/talk/': playlist('..%2Fb.m3u8') });
    await refuses(
      t,
      'FOLDER_NOT_LISTED',
      { '/talk/': page(['deep/']), '/other/': page(['b.mp4']) },
      {
        redirects: { '/talk/deep/': '/other/' },
      },
    );
  });

  test('is bounded in files, folders, depth and bytes, before anything of it is fetched', async (t) => {
    const listing = (names: string[]) =>
      JSON.stringify(names.map((name) => ({ name, type: name.endsWith('/') ? 'directory' : 'file', size: 10 })));
    const many = Array.from({ length: 100_001 }, (_, index) => `${index}.m4s`);
    await refuses(t, 'FOLDER_TOO_LARGE', { '/talk/': listing(many) }, { bounds: { ...roomy, maxFiles: 100_000 } });
    await refuses(
      t,
      'FOLDER_TOO_LARGE',
      { '/talk/': listing(['a', 'b', 'c']) },
      { bounds: { ...roomy, maxBytes: 29 } },
    );
    const endless: RequestListener = (_request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end('[{"name":"deeper","type":"directory"}]');
    };
    await assert.rejects(openFrom(t, endless, '/talk/'), { reason: 'FOLDER_TOO_LARGE' });
    const fanned: RequestListener = (_request, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(
        JSON.stringify(Array.from({ length: 600 }, (_, name) => ({ name: String(name), type: 'directory' }))),
      );
    };
    await assert.rejects(openFrom(t, fanned, '/talk/'), { reason: 'FOLDER_TOO_LARGE' });
  });

  test('has the sizes of its files from a server that tells none', async (t) => {
    for (const ranges of [true, false]) {
      const listener: RequestListener = (request, response) => {
        const listing = '[{"name":"a.mp4","type":"file"}]';
        if (request.url === '/talk/') response.setHeader('content-type', 'application/json').end(listing);
        else sendFile(request, response, { content: Buffer.from('seven b'), ranges, wholeSize: false, length: false });
      };
      const folder = await openFrom(t, listener, '/talk/');
      assert.deepEqual(folder.files, [{ path: 'a.mp4', sizeBytes: 7 }]);
      assert.equal(await contentOf(folder, 'a.mp4'), 'seven b');
    }
  });

  test('asks for a file that is listed as empty, of which nothing is read', async (t) => {
    const files = { '/talk/': '[{"name":"a.vtt","type":"file","size":0}]', '/talk/a.vtt': 'four' };
    const { folder } = await open(t, files, '/talk/');
    assert.deepEqual(folder.files, [{ path: 'a.vtt', sizeBytes: 4 }]);
  });

  test('notices a file that is no longer what was listed', async (t) => {
    const files = { '/talk/': '[{"name":"a.mp4","type":"file","size":3}]', '/talk/a.mp4': 'four' };
    const { folder } = await open(t, files, '/talk/');
    await assert.rejects(folder.open('a.mp4', never), { reason: 'SOURCE_CHANGED' });
  });
});

/** Opens a folder with the given files by what a server lists. */
async function openServed(
  start: (root: string) => Promise<FileServer>,
  path: string,
  files: Readonly<Record<string, string | Buffer>>,
): Promise<{ folder: SourceFolder; cleanUp: () => Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), 'attestream-http-folder-'));
  writeFiles(root, files);
  const [server, client, { scratch, remove }] = [await start(root), newClient(), await newScratch()];
  const url = server.base + path;
  const folder = await httpFolderOpener(client, roomy, crawlPlaylists)({ type: 'remote_folder_url', url }, 0, {
    signal: never,
    scratch,
  });
  return {
    folder,
    cleanUp: async () => {
      await client.close();
      await server.stop();
      await remove();
      await rm(root, { recursive: true });
    },
  };
}

test('a playlist that is longer than the server says is refused, and so is one that is larger than any file may be', async (t) => {
  const playlist = '#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-ENDLIST\n';
  for (const [reason, excess, maxBytes] of [
    ['HTTP_ANSWER_INVALID', '#more', 1000],
    ['HTTP_TOO_LARGE', '', 10],
  ] as const) {
    const port = await speak(t, (socket) =>
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${playlist.length}\r\n\r\n${playlist}${excess}`);
      }),
    );
    const url = `http://127.0.0.1:${port}/a.m3u8`;
    const opener = httpFolderOpener(clientFor(t, { maxBytes }), roomy, crawlPlaylists);
    const context = { signal: never, scratch: (await scratchFor(t)).scratch };
    await assert.rejects(opener({ type: 'remote_folder_url', url }, 0, context), { reason });
  }
});

interface Wishes {
  readonly playlistPattern?: string;
  readonly bounds?: FolderLimits;
  readonly redirects?: Readonly<Record<string, string>>;
  /** The status of files that are not there; 404 where it is not stated. */
  readonly absentStatus?: number;
}

/** Opens a folder of a server that has the given files, by their addresses with their queries. */
async function open(t: TestContext, files: Readonly<Record<string, string>>, path: string, wishes: Wishes = {}) {
  const asked: string[] = [];
  const folder = await openFrom(
    t,
    (request, response) => {
      const url = request.url ?? '';
      asked.push(url);
      const content = files[url];
      const location = wishes.redirects?.[url];
      if (location !== undefined) response.writeHead(302, { location }).end();
      else if (content === undefined) response.writeHead(wishes.absentStatus ?? 404).end();
      else {
        const headers = content.startsWith('[') ? { 'content-type': 'application/json' } : {};
        sendFile(request, response, { content: Buffer.from(content), headers });
      }
    },
    path,
    wishes,
  );
  return { folder, paths: asked };
}

async function openFrom(
  t: TestContext,
  listener: RequestListener,
  path: string,
  { playlistPattern, bounds = roomy }: Wishes = {},
): Promise<SourceFolder> {
  const server = await serve(t, listener);
  const opener = httpFolderOpener(clientFor(t), bounds, crawlPlaylists);
  return await opener({ type: 'remote_folder_url', url: server.base + path }, 0, {
    signal: never,
    scratch: (await scratchFor(t)).scratch,
    ...(playlistPattern !== undefined && { playlistPattern }),
  });
}

async function refuses(t: TestContext, reason: string, files: Readonly<Record<string, string>>, wishes: Wishes = {}) {
  await assert.rejects(open(t, files, '/talk/', wishes), { reason }, JSON.stringify(files).slice(0, 200));
}

function paths(folder: SourceFolder): string[] {
  return folder.files.map(({ path }) => path);
}

async function contentOf(folder: SourceFolder, path: string): Promise<string> {
  const source = await folder.open(path, never);
  try {
    return (await readRange(source, 0, source.sizeBytes, never)).toString();
  } finally {
    await source.close();
  }
}
