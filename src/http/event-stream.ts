import { setTimeout as sleep } from 'node:timers/promises';
import { type JobSnapshot, jobJson } from '#jobs/job.ts';
import type { JobEvent } from '#jobs/job-feed.ts';

/** A comment is sent so often, so that nothing between here and the client takes the connection for dead. */
const COMMENT_INTERVAL_MS = 15_000;

/** A client that takes nothing for so long is dropped. What it has not taken by then is one event, and no more. */
const STALL_BOUND_MS = 30_000;

/** After so long a client that lost the connection connects again. */
const RECONNECT_MS = 2_000;

/** The identifier of the last event. A client that sends it back has seen everything. */
export const LAST_EVENT_ID = 'done';

export interface StreamBounds {
  readonly commentIntervalMs: number;
  readonly stallBoundMs: number;
}

export const STREAM_BOUNDS: StreamBounds = { commentIntervalMs: COMMENT_INTERVAL_MS, stallBoundMs: STALL_BOUND_MS };

/** The client that events are sent to. */
export interface EventClient {
  /** Ends its connection: it connects again after a while. */
  drop(): void;
  /** Whether there is room for the last event, which has all results. */
  mayEnd(sizeBytes: number): boolean;
}

/**
 * The events of a job as text of the type `text/event-stream` (HTML, "Server-sent events"). The next piece is made when
 * the one before was taken; a client that does not take it in time is dropped.
 */
export async function* eventStream(
  events: AsyncIterator<JobEvent>,
  { commentIntervalMs, stallBoundMs }: StreamBounds,
  client: EventClient,
): AsyncGenerator<Buffer, void, void> {
  try {
    yield Buffer.from(`retry: ${RECONNECT_MS}\n\n`);
    for await (const { bytes, isLast } of withComments(events, commentIntervalMs)) {
      if (isLast && !client.mayEnd(bytes.length)) return client.drop();
      const stalled = setTimeout(() => client.drop(), stallBoundMs);
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

const COMMENT = Buffer.from(': the job goes on\n\n');

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
