import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import compress from '@fastify/compress';
import files from '@fastify/static';
import type { FastifyInstance, FastifyPluginAsync } from 'fastify';
import { VENDOR_FILES, vendorFile } from '#config/vendor-files.ts';
import { unknownRoute } from '../hooks/error-replies.ts';

/** The page and its modules, as a browser loads them: there is no build. */
const CONSOLE_DIR = fileURLToPath(new URL('../../../console/', import.meta.url));

/** Packages of several files that the console loads, by the name of their folder under `/console/vendor/`. */
const VENDOR_FOLDERS = {
  cborg: import.meta.resolve('cborg'),
  hashes: import.meta.resolve('@noble/hashes/sha2.js'),
};

/** The catalogue of errors as a page of the documentation, which the console shows. */
const DOCS_DIR = fileURLToPath(new URL('../../../docs/', import.meta.url));

/** Text only: compressing the reader's 9 MB for every visitor costs more than it saves on a local network. */
const COMPRESSED_TYPES = /^(?:text\/(?:html|css|javascript|markdown)|application\/javascript)\b/;

/**
 * Adds the console at `/`, and its files under `/console/`. They are open: what they show comes from routes that ask for a
 * login.
 */
export async function addConsole(app: FastifyInstance): Promise<void> {
  await app.register(consoleFiles);
}

const consoleFiles: FastifyPluginAsync = async (scope) => {
  const policy = contentSecurityPolicy(readFileSync(`${CONSOLE_DIR}index.html`, 'utf8'));
  scope.addHook('onRoute', (route) => {
    route.config = { ...route.config, open: true };
    route.schema = { hide: true };
    route.logLevel = 'warn';
  });
  await scope.register(compress, { threshold: 1024, customTypes: COMPRESSED_TYPES });
  // A route for each file, so that unknown names are answered as everywhere else.
  const options = { wildcard: false, index: false, maxAge: 0 } as const;
  await scope.register(files, { ...options, root: CONSOLE_DIR, prefix: '/console/' });
  for (const [name, entry] of Object.entries(VENDOR_FOLDERS)) {
    const folder = { root: dirname(fileURLToPath(entry)), prefix: `/console/vendor/${name}/` };
    await scope.register(files, { ...options, ...folder, decorateReply: false });
  }
  scope.get<{ Params: { name: string } }>('/console/vendor/:name', (request, reply) => {
    const name = VENDOR_FILES.find((known) => known === request.params.name);
    if (name === undefined) throw unknownRoute(request);
    const path = fileURLToPath(vendorFile(name));
    return reply.sendFile(basename(path), dirname(path));
  });
  scope.get('/console/errors.md', (_request, reply) => reply.sendFile('errors.md', DOCS_DIR));
  const headers = { 'Content-Security-Policy': policy, 'Referrer-Policy': 'no-referrer' };
  scope.get('/', (_request, reply) => reply.headers(headers).sendFile('index.html', CONSOLE_DIR));
};

/** Lets the page load its own files, talk to this service, run the reader (WebAssembly), and nothing else. */
function contentSecurityPolicy(page: string): string {
  const [, importMap = ''] = /<script type="importmap">([\s\S]*?)<\/script>/.exec(page) ?? [];
  const importMapHash = createHash('sha256').update(importMap).digest('base64');
  return [
    "default-src 'none'",
    `script-src 'self' 'wasm-unsafe-eval' 'sha256-${importMapHash}'`,
    "style-src 'self'",
    "img-src 'self' data: blob:",
    "media-src 'self' blob:",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
