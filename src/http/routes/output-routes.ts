import { basename } from 'node:path';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { scopeOf } from '#jobs/caller.ts';
import type { JobService } from '#jobs/jobs.ts';
import { listOutput, MAX_LISTED_FILES, type OpenedOutput, openOutput } from '#outputs/open-output.ts';
import { goneSignal } from '../hooks/responses.ts';
import { errorResponses, ok } from '../openapi/responses.ts';
import { knownJobId } from './job-routes.ts';

/** Headers of outputs. They come from callers, so a browser that opens one as a page runs none of its scripts. */
const OUTPUT_HEADERS = {
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; media-src 'self'; sandbox",
  'Accept-Ranges': 'bytes',
  // Kept, and asked for again with If-None-Match: a path that is signed again has other bytes.
  'Cache-Control': 'private, no-cache',
} as const;

interface OutputRoute {
  /** `*` is missing for the output itself. */
  readonly Params: { readonly id: string; readonly index: string; readonly '*'?: string };
}

interface OutputRouteParts {
  readonly jobs: JobService;
  readonly config: Config;
}

const params = z.object({
  id: z.string().describe('The job identifier.'),
  index: z.string().describe('Position of the input in the request, counted from zero.'),
  path: z.string().describe('The name of the file, or its path in a publication.'),
});

const listing = z
  .object({
    files: z
      .array(
        z.object({
          path: z.string().describe('Of the file in the output; for an output that is a file, its name.'),
          size_bytes: z.int().min(0),
        }),
      )
      .describe(`In the order of their paths, ${MAX_LISTED_FILES} at most.`),
    more: z.boolean().describe('There are more files than are listed.'),
  })
  .meta({
    id: 'OutputListing',
    description: 'The files of a delivered output.',
    examples: [{ files: [{ path: 'interview_c2pa.mp4', size_bytes: 1200000000 }], more: false }],
  });

/** Adds the committed files of a job, from local outputs and from S3, with ranges (RFC 9110 §14). */
export function addOutputRoutes(app: FastifyInstance, parts: OutputRouteParts): void {
  addListingRoute(app, parts);
  addFileRoute(app, parts);
}

function addListingRoute(app: FastifyInstance, { jobs, config }: OutputRouteParts): void {
  app.route<OutputRoute>({
    method: 'GET',
    url: '/v2/jobs/:id/outputs/:index',
    schema: {
      operationId: 'list-output',
      summary: 'List the files of an output',
      tags: ['Jobs'],
      params: params.omit({ path: true }),
      response: {
        200: ok(listing, 'The files that lie there now.'),
        ...errorResponses([400, 401, 403, 404, 405, 500, 503]),
      },
    },
    handler: async (request, reply) => {
      const signal = goneSignal(reply);
      const paths = await outputPathsOf(request, jobs);
      const listings = await Promise.all(paths.map((path) => listOutput(path, config.output_sinks, signal)));
      const files = listings.flatMap((listing) => listing.files);
      return {
        files: files.map(({ path, sizeBytes }) => ({ path, size_bytes: sizeBytes })),
        more: listings.some(({ more }) => more),
      };
    },
  });
}

function addFileRoute(app: FastifyInstance, { jobs, config }: OutputRouteParts): void {
  app.route<OutputRoute>({
    method: 'GET',
    url: '/v2/jobs/:id/outputs/:index/*',
    schema: {
      operationId: 'get-output',
      summary: 'Read an output',
      description:
        'A delivered file: for a single file its name, for a publication the path of a file in its folder. Answers ranges and `If-None-Match`. What lies at the path now is sent, also where a later job has replaced it.',
      tags: ['Jobs'],
      params,
      response: {
        200: { description: 'The file.', content: { '*/*': { schema: z.string() } } },
        206: { description: 'The range that was asked for.', content: { '*/*': { schema: z.string() } } },
        304: z.undefined().describe('The client has the file as it is (`If-None-Match`).'),
        ...errorResponses([400, 401, 403, 404, 405, 416, 500, 503]),
      },
    },
    handler: async (request, reply) => {
      const output = await openRequested(request, jobs, config, goneSignal(reply));
      return await sendOutput(request, reply, output);
    },
  });
}

async function openRequested(
  request: FastifyRequest<OutputRoute>,
  jobs: JobService,
  config: Config,
  signal: AbortSignal,
): Promise<OpenedOutput> {
  const sinks = config.output_sinks;
  const path = request.params['*'] ?? '';
  const segments = path.split('/');
  const outputPaths = await outputPathsOf(request, jobs);
  if (!segments.every(isName)) throw unknownOutput(request);
  for (const outputPath of outputPaths) {
    const isOutputItself = path === basename(outputPath);
    const output =
      (isOutputItself ? await openOutput({ outputPath, segments: [] }, sinks, signal) : null) ??
      (await openOutput({ outputPath, segments }, sinks, signal));
    if (output !== null) return output;
  }
  throw unknownOutput(request);
}

async function outputPathsOf(request: FastifyRequest<OutputRoute>, jobs: JobService): Promise<readonly string[]> {
  const { id, index } = request.params;
  const jobId = knownJobId(id);
  const isIndex = /^\d{1,9}$/.test(index);
  const outputPaths = isIndex ? await jobs.outputPathsOf(jobId, Number(index), scopeOf(request.caller)) : [];
  if (outputPaths.length === 0) throw unknownOutput(request);
  return outputPaths;
}

function unknownOutput({ params: { id, index, '*': path = '' } }: FastifyRequest<OutputRoute>): AppError {
  const inputIndex = index.slice(0, 12);
  return new AppError('OUTPUT_FILE_UNKNOWN', { jobId: id, inputIndex, path: path.slice(0, 200) });
}

/** Returns true for a name that means an entry of its folder, and nothing else, to a file system and to S3. */
function isName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !name.includes('\0');
}

/** Sends a file, or the one range that was asked for. More ranges in one request are answered with the whole file. */
async function sendOutput(request: FastifyRequest, reply: FastifyReply, output: OpenedOutput): Promise<FastifyReply> {
  const { sizeBytes, etag, mediaType } = output;
  reply.headers({ ...OUTPUT_HEADERS, ETag: etag }).type(mediaType);
  if (hasCurrent(request.headers['if-none-match'], etag)) {
    await output.close();
    return reply.status(304).send();
  }
  const range = rangeOf(request, output);
  if (range === null) {
    await output.close();
    reply.header('Content-Range', `bytes */${sizeBytes}`);
    throw new AppError('RANGE_OUTSIDE_FILE', { sizeBytes });
  }
  const [offset, length] = [range.start, range.end - range.start + 1];
  reply.header('Content-Length', length);
  if (range.isPart) reply.status(206).header('Content-Range', `bytes ${range.start}-${range.end}/${sizeBytes}`);
  if (request.method === 'HEAD' || length === 0) {
    await output.close();
    // Fastify keeps the length that a stream's headers state.
    return reply.send(Readable.from([]));
  }
  return reply.send(output.read(offset, length));
}

/** Tells whether a client has the file as it is: it names any (`*`), or the tag in a list. Weak tags count (RFC 9110 §13.1.2). */
function hasCurrent(ifNoneMatch: string | undefined, etag: string): boolean {
  const known = ifNoneMatch?.match(/^\s*\*\s*$|"[^"]*"/g) ?? [];
  return known.some((tag) => tag.trim() === '*' || tag === etag.replace(/^W\//, ''));
}

/** One range of bytes (RFC 9110 §14.1.2): from a first to a last one, which may be left out, or so many at the end. */
const BYTE_RANGE = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/** Returns the bytes to send, the last one included; null when the file has none of the range. A malformed range is ignored. */
function rangeOf(
  { headers: { range = '', 'if-range': ifRange } }: FastifyRequest,
  { sizeBytes, etag }: OpenedOutput,
): { start: number; end: number; isPart: boolean } | null {
  const whole = { start: 0, end: sizeBytes - 1, isPart: false };
  const [, first = '', last = ''] = BYTE_RANGE.exec(range) ?? [];
  const isReversed = first !== '' && last !== '' && Number(last) < Number(first);
  if ((first === '' && last === '') || isReversed || (ifRange !== undefined && ifRange !== etag)) return whole;
  const start = first === '' ? Math.max(sizeBytes - Number(last), 0) : Number(first);
  const end = first === '' || last === '' ? whole.end : Math.min(Number(last), whole.end);
  return start > end ? null : { start, end, isPart: true };
}
