import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { AppError } from '#errors/app-error.ts';
import { scopeOf } from '#jobs/caller.ts';
import type { AnswerRoom } from './answer-room.ts';
import { errorResponses } from './error-responses.ts';
import { eventStream, LAST_EVENT_ID, STREAM_BOUNDS } from './event-stream.ts';
import { type JobRoute, jobParams, knownJobId } from './job-routes.ts';
import type { JobService } from './job-service.ts';

/** Streams of a node at once; each holds a connection. */
const MAX_STREAMS = 1000;

export interface EventRouteParts {
  readonly jobs: JobService;
  /** Aborted when the service stops; it ends every stream. */
  readonly closing: AbortSignal;
  readonly answerRoom: AnswerRoom;
}

/** Adds the stream of what happens to a job. */
export function addEventRoute(app: FastifyInstance, { jobs, closing, answerRoom }: EventRouteParts): void {
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
        ...errorResponses([401, 403, 404, 405, 500, 503]),
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
      const text = eventStream(events, STREAM_BOUNDS, {
        drop: () => reply.raw.destroy(),
        mayEnd: (sizeBytes) => answerRoom.hold(reply.raw, sizeBytes),
      });
      reply.header('X-Accel-Buffering', 'no').type('text/event-stream');
      return reply.send(Readable.from(text, { objectMode: false, highWaterMark: 1 }));
    },
  });
}

const eventStreamText = z.string().describe('`event: progress`, `event: input` and `event: done`, each with `data:`.');
