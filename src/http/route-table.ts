import type { FastifyInstance } from 'fastify';
import { AppError } from '#errors/app-error.ts';

/** The longest path that is repeated in a message or a log, in characters. */
const MAX_PATH_SHOWN = 200;

/** Where the routes are listed, unless the operator has switched that off. */
const DOCUMENT_PATH = '/openapi.json';

/** A request's path without its query, which may hold a secret. */
export function pathOf(url: string): string {
  return (url.split('?', 1)[0] ?? '').slice(0, MAX_PATH_SHOWN);
}

/**
 * Answers paths that no route has with 404, and methods that a path does not take with 405 and an `Allow` header.
 * It answers before a body is read. Call it before the routes are added.
 */
export function answerUnknownRoutes(app: FastifyInstance): void {
  const methodsByPattern = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsByPattern.get(url) ?? new Set();
    methodsByPattern.set(url, new Set([...methods, ...[method].flat()]));
  });
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return;
    const { method } = request;
    const path = pathOf(request.url);
    const allowed = [...methodsByPattern]
      .filter(([pattern]) => matches(pattern, path))
      .flatMap(([, methods]) => [...methods]);
    if (allowed.length === 0) {
      throw new AppError('ROUTE_UNKNOWN', { method, path, documented: methodsByPattern.has(DOCUMENT_PATH) });
    }
    reply.header('Allow', allowed.join(', '));
    throw new AppError('METHOD_UNKNOWN', { method, path, allowed });
  });
}

/** Whether a path fits a pattern such as `/v2/jobs/:id`. */
function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split('/');
  const given = path.split('/');
  return (
    wanted.length === given.length &&
    wanted.every((part, index) => (part.startsWith(':') ? given[index] !== '' : part === given[index]))
  );
}
