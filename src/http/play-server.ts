import { randomBytes } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import files from '@fastify/static';
import Fastify, { type FastifyInstance, type FastifyPluginAsync } from 'fastify';
import { isSameOrInside } from '#bytes/path-overlap.ts';
import { contentTypeOf } from '#outputs/content-type.ts';
import { isPlaylist } from '#outputs/output-sink.ts';
import type { Log } from '#telemetry/logger.ts';
import { guardHosts } from './hooks/access.ts';
import { answerErrors, answerUnknownRoutes, COMMON_HEADERS } from './hooks/error-replies.ts';
import { addConsole } from './routes/console-routes.ts';

/** Bytes of the random part of the address. */
const SECRET_BYTES = 16;

/** A server of the console's player. */
export interface PlayServer {
  /** The address that plays what was named. */
  readonly address: string;
  close(): Promise<void>;
}

/**
 * Serves the console's player, and a media file or the publication of a playlist and nothing else, on 127.0.0.1 under a path
 * that nobody guesses. `entry` is the absolute path of the file or playlist.
 */
export async function startPlayServer(entry: string, log: Log): Promise<PlayServer> {
  const secret = `/${randomBytes(SECRET_BYTES).toString('base64url')}`;
  const app = Fastify();
  guardHosts(app, []);
  answerUnknownRoutes(app);
  answerErrors(app, log);
  app.addHook('onRequest', async (_request, reply) => void reply.headers(COMMON_HEADERS));
  const player: FastifyPluginAsync = async (scope) => {
    await addConsole(scope);
    await addMedia(scope, entry);
  };
  await app.register(player, { prefix: secret });
  const base = await app.listen({ host: '127.0.0.1', port: 0 });
  const source = encodeURIComponent(`media/${encodeURIComponent(basename(entry))}`);
  return { address: `${base}${secret}/#/play?src=${source}`, close: () => app.close() };
}

/** Links may lead out of what was named, and are followed within it only. */
async function addMedia(scope: FastifyInstance, entry: string): Promise<void> {
  const folder = realpathSync(dirname(entry));
  const isAllowed = (path: string): boolean =>
    isPlaylist(entry) ? isSameOrInside(realPathOf(join(folder, path)), folder) : path === `/${basename(entry)}`;
  await scope.register(files, {
    root: folder,
    prefix: '/media/',
    index: false,
    decorateReply: false,
    cacheControl: false,
    allowedPath: isAllowed,
    setHeaders: (reply, path) => reply.header('content-type', contentTypeOf(path)),
  });
}

/** Returns where a path leads; the path itself where it leads nowhere. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // The answer is that there is no such file.
    return path;
  }
}
