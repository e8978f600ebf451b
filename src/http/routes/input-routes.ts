import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Config } from '#config/config.ts';
import { configFileOf } from '#config/config-file.ts';
import { browsedFolder } from '#contract/browsed-folder.ts';
import { wholeNumber } from '#contract/job-list.ts';
import { path } from '#contract/request.ts';
import { InputBrowser } from '#inputs/input-browser.ts';
import { goneSignal } from '../hooks/responses.ts';
import { errorResponses, ok } from '../openapi/responses.ts';
import { cursorAfter, keyOfCursor } from './job-routes.ts';

const MAX_ENTRIES_PER_PAGE = 1000;
const ENTRIES_PER_PAGE = 200;

const browseQuery = z.strictObject({
  path: path.optional().describe('The folder; without it, the roots are listed.'),
  limit: z
    .preprocess(wholeNumber, z.int().min(1).max(MAX_ENTRIES_PER_PAGE).default(ENTRIES_PER_PAGE))
    .describe('Entries of one page.'),
  cursor: z.string().min(1).max(1024).optional().describe('The `next_cursor` of the page before.'),
});

/** Adds the listing of the folders that local inputs are read from. */
export function addInputRoute(app: FastifyInstance, config: Config): void {
  const browser = new InputBrowser(config, configFileOf());
  app.route<{ Querystring: z.infer<typeof browseQuery> }>({
    method: 'GET',
    url: '/v2/inputs',
    logLevel: 'warn',
    schema: {
      operationId: 'list-inputs',
      summary: 'List a folder of inputs',
      description:
        'The files and folders below `input_resolvers.local.roots`, a page at a time in the order of their names; without a path, the roots. Links are followed inside the roots only. Hidden files, devices and files of the service are left out. 404 where no roots are set.',
      tags: ['Service'],
      querystring: browseQuery,
      response: { 200: ok(browsedFolder, 'A page of the folder.'), ...errorResponses([400, 401, 403, 404, 405, 503]) },
    },
    handler: async ({ query: { path, limit, cursor } }, reply) => {
      const after = cursor === undefined ? undefined : keyOfCursor(cursor);
      const { next, ...page } = await browser.list({ path, limit, after }, goneSignal(reply));
      return { ...page, next_cursor: next === null ? null : cursorAfter(next) };
    },
  });
}
