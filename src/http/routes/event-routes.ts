import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { AppError } from '#errors/app-error.ts';
import { scopeOf } from '#jobs/caller.ts';
import { type JobEvent, type JobSnapshot, jobJson } from '#jobs/job.ts';
import type { Jobs } from '#jobs/jobs.ts';
import type { ResponseBufferLimit } from '../hooks/body-limits.ts';
import { errorResponses } from '../openapi/responses.ts';
import { type JobRoute, jobParams, knownJobId } from './job-routes.ts';

/** Bound on the streams of a node; each holds a connection. */
const MAX_STREAMS = 1000;

const COMMENT = Buffer.from(': the job goes on\n\n');

const eventStreamText = z.string().describe('`event: progress`, `event: input` and `event: done`, each with `data:`.');

/** The interval of comments, which keep proxies from closing the connection as idle. */
const COMMENT_INTERVAL_MS = 15_000;

/** The time after which a client that reads nothing is disconnected. At most one event waits for it. */
const STALL_TIMEOUT_MS = 30_000;

/** The time after which a client that lost the connection connects again. */
const RECONNECT_MS = 2_000;

/** The identifier of the last event. A client that sends it back has seen everything. */
export const LAST_EVENT_ID = 'done';

export interface StreamTimings {
  readonly commentIntervalMs: number;
  readonly stallTimeoutMs: number;
}

export const STREAM_TIMINGS: StreamTimings = {
  commentIntervalMs: COMMENT_INTERVAL_MS,
  stallTimeoutMs: STALL_TIMEOUT_MS,
};

export interface EventRouteParts {
  readonly jobs: Pick<Jobs, 'events'>;
  /** Aborted when the service stops; it ends every stream. */
  readonly closing: AbortSignal;
  readonly responseBuffers: ResponseBufferLimit;
}

/** Adds the stream of what happens to a job. */
export function addEventRoute(app: FastifyInstance, { jobs, closing, responseBuffers }: EventRouteParts): void {
  let streams = 0;
  app.route<JobRoute>({
    method: 'GET',
    url: '/v2/jobs/:id/events',
    schema: {
      operationId: 'job-events',
      summary: 'Follow a job',
      description:
        'Server-sent events, each with a Job result as its data: `progress` when the job has moved, beginning with how it is now; `input` when inputs have ended, with their entries in `results`; `done` when the job has ended, with all of them. The stream ends after `done`. Where nothing happens, a comment is sent every 15 seconds. A client that reads too slowly misses steps of `progress` and nothing else; one that does not read at all is dropped.',
      tags: ['Jobs'],
      params: jobParams,
      response: {
        200: { description: 'The events.', content: { 'text/event-stream': { schema: eventStreamText } } },
        204: z.undefined().describe('The client has seen `done` (`Last-Event-ID: done`): it need not connect again.'),
        ...errorResponses([400, 401, 403, 404, 405, 500, 503]),
      },
    },
    handler: async (request, reply) => {
      const id = knownJobId(request.params.id);
      if (request.headers['last-event-id'] === LAST_EVENT_ID) return reply.status(204).send();
      if (streams >= MAX_STREAMS) throw new AppError('EVENT_STREAMS_FULL', { limit: MAX_STREAMS });
      const gone = new AbortController();
      streams += 1;
      reply.raw.once('close', () => {
        streams -= 1;
        gone.abort();
      });
      const events = await jobs.events(id, AbortSignal.any([gone.signal, closing]), scopeOf(request.caller));
      if (events === null) throw new AppError('JOB_UNKNOWN', { jobId: id });
      const text = eventStream(events, STREAM_TIMINGS, {
        drop: () => reply.raw.destroy(),
        mayEnd: (sizeBytes) => responseBuffers.tryReserve(reply.raw, sizeBytes),
      });
      reply.header('X-Accel-Buffering', 'no').type('text/event-stream');
      return reply.send(Readable.from(text, { objectMode: false, highWaterMark: 1 }));
    },
  });
}

/** The client that events are sent to. */
export interface EventClient {
  /** Ends its connection: it connects again after a while. */
  drop(): void;
  /** Reserves memory for the last event, which has all results; false where the limit is reached. */
  mayEnd(sizeBytes: number): boolean;
}

/**
 * Yields the events of a job as text of the type `text/event-stream` (HTML, "Server-sent events"). The next piece is made when
 * the one before was taken; a client that does not take it in time is dropped.
 */
export async function* eventStream(
  events: AsyncIterator<JobEvent>,
  { commentIntervalMs, stallTimeoutMs }: StreamTimings,
  client: EventClient,
): AsyncGenerator<Buffer, void, void> {
  try {
    yield Buffer.from(`retry: ${RECONNECT_MS}\n\n`);
    for await (const { bytes, isLast } of withComments(events, commentIntervalMs)) {
      if (isLast && !client.mayEnd(bytes.length)) return client.drop();
      const stalled = setTimeout(() => client.drop(), stallTimeoutMs);
      try {
        yield bytes;
      } finally {
        clearTimeout(stalled);
      }
    }
  } finally {
    await events.return?.();
  }
}

interface Piece {
  readonly bytes: Buffer;
  readonly isLast: boolean;
}

async function* withComments(events: AsyncIterator<JobEvent>, intervalMs: number): AsyncGenerator<Piece, void, void> {
  let next = events.next();
  for (;;) {
    const quiet = new AbortController();
    const comment = sleep(intervalMs, null, { signal: quiet.signal }).catch(() => null);
    const event = await Promise.race([next, comment]).finally(() => quiet.abort());
    if (event === null) {
      yield { bytes: COMMENT, isLast: false };
      continue;
    }
    if (event.done === true) return;
    yield { bytes: bytesOf(event.value), isLast: event.value.type === 'done' };
    next = events.next();
  }
}

/** Many may follow a job: how it ended, which may be megabytes, is written once for them all. */
const lastEvents = new WeakMap<JobSnapshot, Buffer>();

function bytesOf({ type, job }: JobEvent): Buffer {
  if (type !== 'done') return Buffer.from(textOf(type, job));
  const bytes = lastEvents.get(job) ?? Buffer.from(`id: ${LAST_EVENT_ID}\n${textOf(type, job)}`);
  lastEvents.set(job, bytes);
  return bytes;
}

/** JSON as it is kept and written here holds no line breaks, so an event is one line of data. */
function textOf(type: JobEvent['type'], job: JobSnapshot): string {
  return `event: ${type}\ndata: ${jobJson(job)}\n\n`;
}
