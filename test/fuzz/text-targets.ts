import assert from 'node:assert/strict';
import { readDirectoryIndex } from '#inputs/http/directory-index.ts';
import { fileNameOf } from '#inputs/http/http-headers.ts';
import { parseTimedText } from '#packaging/subtitles/timed-text.ts';
import { clipCues, parseSubtitles, webVttOf } from '#packaging/subtitles/web-vtt.ts';
import { serve, type TestServer } from '../support/servers/serve.ts';
import { type FuzzTarget, mayRefuse } from './fuzz-target.ts';
import { mutateJson } from './mutate-json.ts';
import { textMutation } from './mutate-text.ts';

const FOLDER = new URL('http://host/a/');
const LISTINGS = [
  '<html><head><title>Index of /a/</title></head><body><pre><a href="../">../</a>\n<a href="film.mp4">film.mp4</a>  21-Nov-2026 15:00   1234567\n<a href="b/">b/</a>  21-Nov-2026 15:00   -\n</pre></body></html>',
  '<title>Directory listing for /a/</title><ul><li><a class="x" href=\'caf%C3%A9.mp4\'>café</a></li><li><a href="a&amp;b.mp4">x</a></li></ul>',
  '[{"name":"film.mp4","type":"file","size":12},{"name":"b/","is_dir":true,"size":0}]',
  'attachment; filename="a.mp4"; filename*=UTF-8\'\'caf%C3%A9.mp4',
];
const SUBTITLES = [
  'WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000\n\nSTYLE\n::cue{color:red}\n\n1\n00:00.500 --> 00:01.000 line:0 align:start\nGood <c.x>evening</c>\n\nNOTE x\n',
  '1\r\n00:00:01,000 --> 00:00:03,000 X1:10 Y1:20\r\n<font color="red">Good</font> {\\an8}evening\r\n',
  '<?xml version="1.0"?><tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="http://www.w3.org/ns/ttml#parameter" ttp:frameRate="25"><body><div begin="1s"><p begin="00:00:01:10" end="3.5s">Good<br/><span begin="1s" dur="2s">evening &amp; more</span></p></div></body></tt>',
];
const REQUESTS = [
  {
    inputs: [
      { type: 'local_file_path', path: '/media/a.mp4' },
      { type: 'presigned_url', url: 'https://h/a.mp4?X-Amz-Expires=60' },
    ],
    params: { title: 'x' },
  },
  {
    inputs: [{ type: 'local_folder_path', path: '/media/a' }],
    params: { playlist_pattern: '*.m3u8', init_pattern: 'init*', frag_pattern: '*.m4s' },
  },
  {
    inputs: [{ type: 'directory_url', url: 'http://127.0.0.1:1/a/' }],
    output: { type: 'local_folder_path', path: '/out' },
    callback: { url: 'http://127.0.0.1:1/' },
  },
];
const ROUTES = ['/v2/c2pa/video', '/v2/c2pa/audio', '/v2/c2pa/fragmented', '/v2/c2pa/package', '/v2/package'];
const HTML_WORDS = [
  '<a href="',
  "<a href='",
  '<a ',
  'href=',
  '">',
  '<title>',
  '&#',
  '&#x10ffff;',
  '&nbsp;',
  '<a\nHREF = "x">',
  'filename="',
  "filename*=utf-8''%",
  '=?utf-8?B?',
  '; ',
  '\\"',
  '{"name":"',
  '"type":"file"',
];
const CUE_WORDS = [
  '<font',
  '</font>',
  '{\\',
  '00:00:01.000 --> 00:00:02.000',
  '-->',
  'WEBVTT',
  'STYLE',
  'REGION',
  'NOTE',
  '\n\n',
  '<p begin="1s">',
  '</p>',
  '<span>',
  '</span>',
  '<br/>',
  'begin="99:99:99"',
  'dur="1t"',
  'frameRateMultiplier="0 0"',
  '&#0;',
  '&amp;',
  '<!DOCTYPE',
  '<![CDATA[',
  'X1:1',
  'MPEGTS:8589934591',
  '\r',
  '\0',
  '99999:59:59.999',
];

const TOKEN = 'a-token-for-fuzzing-of-32-characters';
let server: Promise<TestServer> | undefined;

/** Sends a body to every operation: whatever it is, the answer says what is wrong with it or takes it. */
async function post(input: Buffer): Promise<void> {
  // With a token it does not matter to whom a request is addressed, which `inject` does not say.
  server ??= serve({ SERVICE__AUTH__TOKENS: TOKEN });
  const { app, jobs } = await server;
  for (const url of ROUTES) {
    const reply = await app.inject({
      method: 'POST',
      url,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      payload: input,
    });
    assert.ok(reply.statusCode < 500, `${url} answers ${reply.statusCode}: ${reply.body.slice(0, 500)}`);
    assert.ok(reply.body.length < 100_000, `${url} answers ${reply.body.length} characters`);
    JSON.parse(reply.body);
  }
  jobs.submitted.length = 0;
}

function readSubtitles(input: Buffer): void {
  const subtitles = clipCues(parseSubtitles(input), 3600);
  assert.ok(webVttOf(subtitles).startsWith('WEBVTT'));
}

export const textTargets: readonly FuzzTarget[] = [
  {
    name: 'listing',
    seeds: () => LISTINGS.map((text) => Buffer.from(text)),
    mutate: textMutation(HTML_WORDS),
    run: async (input) => {
      const text = input.toString('utf8');
      for (const type of ['text/html', 'application/json']) {
        for (const { url } of readDirectoryIndex(text, type, FOLDER) ?? []) assert.equal(url.host, FOLDER.host);
      }
      fileNameOf(text);
    },
  },
  {
    name: 'subtitles',
    seeds: () => SUBTITLES.map((text) => Buffer.from(text)),
    mutate: textMutation(CUE_WORDS),
    run: async (input) => {
      await mayRefuse(() => readSubtitles(input));
      await mayRefuse(() => parseTimedText(input, 'input.ttml'));
    },
  },
  {
    name: 'requests',
    seeds: () => REQUESTS.map((request) => Buffer.from(JSON.stringify(request))),
    mutate: mutateJson,
    run: post,
  },
];
