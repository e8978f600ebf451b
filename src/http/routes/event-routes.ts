import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { FairCapacity } from '#concurrency/fair-capacity.ts';
import { Semaphore } from '#concurrency/semaphore.ts';
import { AppError } from '#errors/app-error.ts';
import { scopeOf } from '#jobs/caller.ts';
import { type JobEvent, type JobSnapshot, jobJson, type ListEvent } from '#jobs/job.ts';
import type { JobService } from '#jobs/jobs.ts';
import { goneSignal, type ResponseBufferLimit, whenClosed } from '../hooks/responses.ts';
import { errorResponses } from '../openapi/responses.ts';
import { type JobRoute, jobParams, knownJobId } from './job-routes.ts';

/** Bound on the streams of a node; each holds a connection. */
const MAX_STREAMS = 1000;

/** Bound on the events that are written in one turn of the event loop: requests are handled between those of a thousand streams. */
const MAX_EVENTS_A_TURN = 16;

const COMMENT = Buffer.from(': nothing has changed\n\n');

const jobEventsText = z.string().describe('`event: progress`, `event: input` and `event: done`, each with `data:`.');
const listEventsText = z.string().describe('`event: jobs` and `event: reload`, each with `data:`.');

/** The time after which a client that lost the connection connects again. */
const RECONNECT_MS = 2_000;

/** The identifier of the last event. A client that sends it back has seen everything. */
const LAST_EVENT_ID = 'done';

interface StreamTimings {
  /** The interval of comments, which keep proxies from closing the connection as idle. */
  readonly commentIntervalMs: number;
  /** The time after which a client that reads nothing is disconnected. At most one event waits for it. */
  readonly stallTimeoutMs: number;
}

const STREAM_TIMINGS: StreamTimings = { commentIntervalMs: 15_000, stallTimeoutMs: 30_000 };

interface EventRouteParts {
  readonly jobs: JobService;
  /** Aborted when the service stops; it ends every stream. */
  readonly closing: AbortSignal;
  readonly responseBuffers: ResponseBufferLimit;
  /** Returns the callers that half of the streams are reserved for. */
  readonly callers: () => readonly string[];
}

/** Adds the streams of what happens to a job, and to all jobs. */
export function addEventRoutes(app: FastifyInstance, parts: EventRouteParts): void {
  const streams = new OpenStreams(parts.callers);
  addJobEvents(app, parts, streams);
  addListEvents(app, parts, streams);
}

/** Counts the streams that are open, by caller. */
class OpenStreams {
  readonly #capacity: FairCapacity;

  constructor(callers: () => readonly string[]) {
    this.#capacity = new FairCapacity(MAX_STREAMS, callers);
  }

  /**
   * Returns a signal that is aborted when the client is gone. Throws `EVENT_STREAMS_FULL` where there are too many streams, and
   * `CALLER_STREAMS_FULL` where the rest is reserved for other callers.
   */
  add({ caller: { name } }: FastifyRequest, reply: FastifyReply): AbortSignal {
    const refusal = this.#capacity.tryReserve(name, 1);
    if (refusal?.reason === 'caller-limit') throw new AppError('CALLER_STREAMS_FULL', { open: refusal.used });
    if (refusal !== null) throw new AppError('EVENT_STREAMS_FULL', { limit: MAX_STREAMS });
    whenClosed(reply.raw, () => this.#capacity.release(name, 1));
    return goneSignal(reply);
  }
}

function addJobEvents(
  app: FastifyInstance,
  { jobs, closing, responseBuffers }: EventRouteParts,
  streams: OpenStreams,
): void {
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
        200: { description: 'The events.', content: { 'text/event-stream': { schema: jobEventsText } } },
        204: z.undefined().describe('The client has seen `done` (`Last-Event-ID: done`): it need not connect again.'),
        ...errorResponses([400, 401, 403, 404, 405, 429, 500, 503]),
      },
    },
    handler: async (request, reply) => {
      const id = knownJobId(request.params.id);
      if (request.headers['last-event-id'] === LAST_EVENT_ID) return reply.status(204).send();
      const signal = AbortSignal.any([streams.add(request, reply), closing]);
      const events = await jobs.events(id, signal, scopeOf(request.caller));
      if (events === null) throw new AppError('JOB_UNKNOWN', { jobId: id });
      const client = {
        drop: () => reply.raw.destroy(),
        mayEnd: (sizeBytes: number) => responseBuffers.tryReserve(reply.raw, sizeBytes),
      };
      return sendStream(reply, eventStream(events, STREAM_TIMINGS, client));
    },
  });
}

/**
 * Adds the events of the list of jobs. Their path does not lie under `/v2/jobs/`, where every name may be that
 * of a job.
 */
function addListEvents(app: FastifyInstance, { jobs, closing }: EventRouteParts, streams: OpenStreams): void {
  app.route({
    method: 'GET',
    url: '/v2/events',
    schema: {
      operationId: 'list-events',
      summary: 'Follow all jobs',
      description:
        'Server-sent events about the jobs that the caller may list, at most one a second: `jobs` with those that were submitted or have changed, as the list shows them (`{"jobs": [Listed job]}`); `reload` where there were too many, so that they have to be listed anew. The first events may repeat what was listed before. List the jobs once the stream is open, and again whenever it was opened anew. Where nothing happens, a comment is sent every 15 seconds. The stream has no end.',
      tags: ['Jobs'],
      response: {
        200: { description: 'The events.', content: { 'text/event-stream': { schema: listEventsText } } },
        ...errorResponses([401, 403, 405, 429, 500, 503]),
      },
    },
    handler: async (request, reply) => {
      const signal = AbortSignal.any([streams.add(request, reply), closing]);
      const pieces = piecesOf(jobs.changes(signal, scopeOf(request.caller)), listEventPiece);
      return sendStream(
        reply,
        streamText(pieces, STREAM_TIMINGS, { drop: () => reply.raw.destroy(), mayEnd: () => true }),
      );
    },
  });
}

function sendStream(reply: FastifyReply, text: AsyncGenerator<Buffer>): FastifyReply {
  reply.header('X-Accel-Buffering', 'no').type('text/event-stream');
  return reply.send(Readable.from(text, { objectMode: false, highWaterMark: 1 }));
}

/** The client that events are sent to. */
export interface EventClient {
  /** Ends its connection: it connects again after a while. */
  drop(): void;
  /** Reserves memory for the last event, which has all results; false where the limit is reached. */
  mayEnd(sizeBytes: number): boolean;
}

/** Yields the events of a job as text of the type `text/event-stream`, as `streamText` does. */
export function eventStream(
  events: AsyncIterator<JobEvent>,
  timings: StreamTimings,
  client: EventClient,
): AsyncGenerator<Buffer, void, void> {
  return streamText(piecesOf(events, jobEventPiece), timings, client);
}

/**
 * Yields events as text of the type `text/event-stream` (HTML, "Server-sent events"). The next piece is made when the
 * one before was taken; a client that does not take it in time is dropped.
 */
async function* streamText(
  pieces: AsyncGenerator<Piece, void, void>,
  { commentIntervalMs, stallTimeoutMs }: StreamTimings,
  client: EventClient,
): AsyncGenerator<Buffer, void, void> {
  try {
    yield Buffer.from(`retry: ${RECONNECT_MS}\n\n`);
    for await (const { bytes, isLast } of withComments(pieces, commentIntervalMs)) {
      if (isLast && !client.mayEnd(bytes.length)) return client.drop();
      const stalled = setTimeout(() => client.drop(), stallTimeoutMs);
      try {
        yield bytes;
      } finally {
        clearTimeout(stalled);
      }
    }
  } finally {
    await pieces.return();
  }
}

interface Piece {
  readonly bytes: Buffer;
  readonly isLast: boolean;
}

async function* piecesOf<Event>(
  events: AsyncIterator<Event>,
  pieceOf: (event: Event) => Piece,
): AsyncGenerator<Piece, void, void> {
  try {
    for (let event = await events.next(); event.done !== true; event = await events.next()) {
      await nextTurn();
      yield pieceOf(event.value);
    }
  } finally {
    await events.return?.();
  }
}

/** Yields a comment in each interval without a piece. One timer for a stream: one for each piece would keep the garbage collector busy. */
async function* withComments(pieces: AsyncIterator<Piece>, intervalMs: number): AsyncGenerator<Piece, void, void> {
  let tick = Promise.withResolvers<null>();
  let isQuiet = true;
  const ticks = setInterval(() => tick.resolve(null), intervalMs);
  try {
    let next = pieces.next();
    for (;;) {
      const piece = await Promise.race([next, tick.promise]);
      if (piece === null) {
        tick = Promise.withResolvers();
        await nextTurn();
        if (isQuiet) yield { bytes: COMMENT, isLast: false };
        isQuiet = true;
        continue;
      }
      if (piece.done === true) return;
      isQuiet = false;
      yield piece.value;
      next = pieces.next();
    }
  } finally {
    clearInterval(ticks);
  }
}

const turns = new Semaphore(MAX_EVENTS_A_TURN);

/** Resolves in a turn of the event loop in which an event may be written. */
async function nextTurn(): Promise<void> {
  await turns.acquire();
  setImmediate(() => turns.release());
}

/** Many may follow a job: how it ended, which may be megabytes, is written once for them all. */
const lastEvents = new WeakMap<JobSnapshot, Buffer>();

function jobEventPiece({ type, job }: JobEvent): Piece {
  if (type !== 'done') return { bytes: Buffer.from(textOf(type, job)), isLast: false };
  const bytes = lastEvents.get(job) ?? Buffer.from(`id: ${LAST_EVENT_ID}\n${textOf(type, job)}`);
  lastEvents.set(job, bytes);
  return { bytes, isLast: true };
}

function listEventPiece({ type, ...data }: ListEvent): Piece {
  return { bytes: Buffer.from(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`), isLast: false };
}

/** Writes an event with one line of data: JSON as it is kept and written here holds no line breaks. */
function textOf(type: JobEvent['type'], job: JobSnapshot): string {
  return `event: ${type}\ndata: ${jobJson(job)}\n\n`;
}
