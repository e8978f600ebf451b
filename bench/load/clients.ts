import autocannon from 'autocannon';
import { type Answer, postSlowly } from './slow-client.ts';

/** No answer takes as long as this, in seconds: a synchronous one waits for everything before it in the queue. */
const ANSWER_TIMEOUT_S = 600;

/** One of so many clients is slow. */
const SLOW_CLIENT_EVERY = 10;

export interface Submission {
  /** Such as `/v2/c2pa/audio`. */
  readonly path: string;
  readonly body: string;
}

export interface Load {
  readonly requests: number;
  readonly connections: number;
  /** The next submission; every one is of its own. */
  readonly next: () => Submission;
}

/** Posts submissions from many connections at once, one in ten of them slow; resolves with the answers. */
export async function postAll(base: string, { requests, connections, next }: Load): Promise<Answer[]> {
  const slow = Math.floor(requests / SLOW_CLIENT_EVERY);
  const slowConnections = Math.floor(connections / SLOW_CLIENT_EVERY);
  const answers = await Promise.all([
    postQuickly(base, { requests: requests - slow, connections: connections - slowConnections, next }),
    postAllSlowly(base, { requests: slow, connections: slowConnections, next }),
  ]);
  return answers.flat();
}

async function postQuickly(base: string, { requests, connections, next }: Load): Promise<Answer[]> {
  const answers: Answer[] = [];
  const { errors, timeouts } = await autocannon({
    url: base,
    connections: Math.min(connections, requests),
    amount: requests,
    timeout: ANSWER_TIMEOUT_S,
    requests: [
      {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        setupRequest: (request) => ({ ...request, ...next() }),
        onResponse: (status, body) => void answers.push({ status, body }),
      },
    ],
  });
  // A connection that broke is an answer that never came.
  for (let lost = 0; lost < errors + timeouts; lost += 1) answers.push({ status: 0, body: '' });
  return answers;
}

async function postAllSlowly(base: string, { requests, connections, next }: Load): Promise<Answer[]> {
  const answers: Answer[] = [];
  let left = requests;
  const client = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const { path, body } = next();
      answers.push(await postSlowly(new URL(path, base), body).catch(() => ({ status: 0, body: '' })));
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
  return answers;
}
