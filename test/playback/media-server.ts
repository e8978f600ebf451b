import { once } from 'node:events';
import { createReadStream, readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { contentTypeOf } from '#outputs/content-type.ts';

/** A web server on this host that serves a folder of media, and a page for each player. */
export interface MediaServer {
  readonly base: string;
  close(): Promise<void>;
}

const SCRIPTS: Readonly<Record<string, string>> = {
  '/hls.js': fileURLToPath(import.meta.resolve('hls.js/dist/hls.min.js')),
  '/shaka.js': fileURLToPath(import.meta.resolve('shaka-player/dist/shaka-player.compiled.js')),
};

/** A generous bound on an answer, in place of the players' own: it is passed only where something hangs. */
const HANG_MS = 600_000;

/** Playback that stalls while the machine does something else is no fault of the media. */
const START_HLS = `
  const limits = { maxTimeToFirstByteMs: ${HANG_MS}, maxLoadTimeMs: ${HANG_MS}, timeoutRetry: null, errorRetry: null };
  const policy = { default: limits };
  const hls = new Hls({ maxBufferLength: 60, manifestLoadPolicy: policy, playlistLoadPolicy: policy, fragLoadPolicy: policy });
  const stalls = ['bufferStalledError', 'bufferNudgeOnStall'];
  hls.on(Hls.Events.ERROR, (_event, { type, details, error, fatal }) => {
    if (fatal || !stalls.includes(details)) fail(type, details, error);
  });
  hls.loadSource(source);
  hls.attachMedia(video);`;

const START_SHAKA = `
  const player = new shaka.Player();
  player.addEventListener('error', ({ detail }) => fail('shaka', detail.code));
  const preferred = (name) => query.has(name) ? [{ language: query.get(name) }] : [];
  const retryParameters = { timeout: ${HANG_MS}, stallTimeout: ${HANG_MS}, connectionTimeout: ${HANG_MS} };
  player.configure({
    streaming: { bufferingGoal: 60, retryParameters },
    manifest: { retryParameters },
    preferredAudio: preferred('sound'),
    preferredText: preferred('text'),
  });
  player.attach(video).then(() => player.load(source)).catch((error) => fail('shaka', error.code, error));`;

const PAGES: Readonly<Record<string, string>> = {
  '/hls.html': pageOf('/hls.js', START_HLS),
  '/shaka.html': pageOf('/shaka.js', START_SHAKA),
};

/** A page that plays the `source` of its query, and whose `state` tells how it goes; `sound` and `text` may name languages to begin with. */
function pageOf(script: string, start: string): string {
  return `<!doctype html>
<link rel="icon" href="data:,">
<video muted autoplay playsinline></video>
<script src="${script}"></script>
<script>
  const video = document.querySelector('video');
  const query = new URLSearchParams(location.search);
  const source = query.get('source');
  const errors = [];
  const fail = (...words) => errors.push(words.join(' '));
  addEventListener('error', ({ message }) => fail(message));
  video.addEventListener('error', () => fail('video', video.error.message));
  function state() {
    const { buffered, currentTime } = video;
    const bufferedSeconds = buffered.length === 0 ? 0 : buffered.end(buffered.length - 1);
    return { errors, playedSeconds: currentTime, bufferedSeconds };
  }${start}
</script>`;
}

export async function serveMedia(folder: string): Promise<MediaServer> {
  const server = createServer((request, response) => {
    answer(folder, request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the system gave no port');
  return {
    base: `http://127.0.0.1:${address.port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function answer(folder: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = decodeURIComponent(new URL(request.url ?? '/', 'http://localhost').pathname);
  const page = PAGES[path];
  const script = SCRIPTS[path];
  if (page !== undefined) response.writeHead(200, { 'content-type': 'text/html' }).end(page);
  else if (script !== undefined)
    response.writeHead(200, { 'content-type': 'text/javascript' }).end(readFileSync(script));
  else await sendFile(join(folder, normalize(path.replace(/^\/media/, ''))), request, response);
}

async function sendFile(path: string, { headers }: IncomingMessage, response: ServerResponse): Promise<void> {
  const file = await stat(path).catch(() => null);
  if (file === null) {
    response.writeHead(404).end();
    return;
  }
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [];
  const start = Number(first ?? 0);
  const end = last === undefined || last === '' ? file.size - 1 : Math.min(Number(last), file.size - 1);
  response.writeHead(first === undefined ? 200 : 206, {
    'content-type': contentTypeOf(path),
    'content-length': end - start + 1,
    ...(first !== undefined && { 'content-range': `bytes ${start}-${end}/${file.size}` }),
  });
  createReadStream(path, { start, end }).pipe(response);
}
