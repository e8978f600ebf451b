// `npm run play -- FOLDER`: serves a publication or a media file on this host alone, and the console's player, which verifies
// every fragment while it plays, until Ctrl-C.
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import files from '@fastify/static';
import Fastify from 'fastify';
import { addConsole } from '#http/routes/console-routes.ts';
import { contentTypeOf } from '#outputs/content-type.ts';

/** Playlists that a publication may be entered by, the first that is there. */
const ENTRIES = ['master.m3u8', 'main.m3u8', 'index.m3u8', 'manifest.m3u8', 'playlist.m3u8'];

const given = resolve(process.argv[2] ?? '.');
const entry = statSync(given, { throwIfNoEntry: false })?.isFile()
  ? given
  : ENTRIES.map((name) => join(given, name)).find((path) => existsSync(path));
if (entry === undefined) {
  console.error(`There is no ${ENTRIES.join(', ')} in ${given}. Usage: npm run play -- FOLDER, or a file`);
  process.exit(2);
}

const app = Fastify();
await addConsole(app);
await app.register(files, {
  root: dirname(entry),
  prefix: '/media/',
  decorateReply: false,
  setHeaders: (reply, path) => reply.header('content-type', contentTypeOf(path)),
});
const base = await app.listen({ host: '127.0.0.1', port: 0 });
console.log(`Open ${base}/#/play?src=${encodeURIComponent(`media/${basename(entry)}`)}`);
