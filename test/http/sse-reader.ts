import { type JobResultResponse, jobResultResponse } from '#contract/job.ts';

export interface ReceivedEvent {
  readonly type: string;
  readonly id?: string;
  readonly job: JobResultResponse;
}

/** Reads the events of a job. */
export async function* readEvents(reply: Response): AsyncGenerator<ReceivedEvent, void, void> {
  for await (const { type, data, id } of readRawEvents(reply)) {
    yield { type, job: jobResultResponse.parse(JSON.parse(data)), ...(id !== undefined && { id }) };
  }
}

/** Reads server-sent events as a browser does: fields of a line each, an empty line ends an event. */
export async function* readRawEvents(
  reply: Response,
): AsyncGenerator<{ readonly type: string; readonly data: string; readonly id: string | undefined }, void, void> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of reply.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map((line) => [line.split(': ', 1)[0], line.slice(line.indexOf(': ') + 2)]),
      );
      const [type, data, id] = [fields.get('event'), fields.get('data'), fields.get('id')];
      if (type !== undefined && data !== undefined) yield { type, data, id };
    }
  }
}

export async function allEvents(reply: Response): Promise<ReceivedEvent[]> {
  const events: ReceivedEvent[] = [];
  for await (const event of readEvents(reply)) events.push(event);
  return events;
}
