// `npm run play -- FOLDER`: serves a publication on this host alone, with a page that plays it, until Ctrl-C.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { contentTypeOf } from '#outputs/content-type.ts';

/** Playlists that a publication may be entered by, the first that is there. */
const ENTRIES = ['manifest.mpd', 'master.m3u8'];
const PLAYER = fileURLToPath(import.meta.resolve('shaka-player/dist/shaka-player.ui.js'));
const STYLE = fileURLToPath(import.meta.resolve('shaka-player/dist/controls.css'));

const folder = resolve(process.argv[2] ?? '.');
const entry = ENTRIES.find((name) => existsSync(join(folder, name)));
if (entry === undefined) {
  console.error(`There is no ${ENTRIES.join(' or ')} in ${folder}. Usage: npm run play -- FOLDER`);
  process.exit(2);
}

const PAGE = `<!doctype html>
<title>${entry}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/controls.css">
<body style="margin: 0; background: #111">
<div id="container" style="max-width: 1280px; margin: auto"><video style="width: 100%"></video></div>
<script src="/player.js"></script>
<script>
  const video = document.querySelector('video');
  const player = new shaka.Player();
  new shaka.ui.Overlay(player, document.getElementById('container'), video);
  player.attach(video).then(() => player.load('/media/${entry}')).catch((error) => alert(error));
</script>`;

const server = createServer(({ url = '/' }, response) => {
  const path = decodeURIComponent(new URL(url, 'http://localhost').pathname);
  if (path === '/') response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
  else if (path === '/player.js') send(PLAYER, 'text/javascript', response);
  else if (path === '/controls.css') send(STYLE, 'text/css', response);
  else sendMedia(resolve(folder, `.${path.replace(/^\/media/, '')}`), response);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address !== null && typeof address !== 'string') console.log(`Open http://localhost:${address.port}/`);
});

function sendMedia(path: string, response: ServerResponse): void {
  if (path.startsWith(folder + sep)) send(path, contentTypeOf(path), response);
  else response.writeHead(404).end();
}

function send(path: string, mediaType: string, response: ServerResponse): void {
  const file = statSync(path, { throwIfNoEntry: false });
  if (file?.isFile() !== true) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { 'content-type': mediaType, 'content-length': file.size });
  createReadStream(path).pipe(response);
}
