import type { Agent } from 'undici';
import type { DeniedNetworks } from '#inputs/http/denied-networks.ts';
import { createGuardedAgent } from '#inputs/http/guarded-agent.ts';
import { exchange } from '#inputs/http/http-exchange.ts';
import type { Post } from './callback-courier.ts';

/** A receiver may be silent for so long. */
const IDLE_BOUND_MS = 10_000;

/**
 * Sends callbacks under the address rules of inputs over HTTP. What a receiver says beside its status is not read, and a
 * redirect is an answer like any other. The connections are made with the first callback.
 */
export function guardedPost(denied: DeniedNetworks): Post {
  let agent: Agent | undefined;
  return async (url, { headers, body }, signal) => {
    agent ??= createGuardedAgent({ denied });
    const request = { method: 'POST', url: new URL(url), headers, body, idleTimeoutMs: IDLE_BOUND_MS } as const;
    const answer = await exchange(agent, request, signal);
    answer.body.cancel();
    return answer.status;
  };
}
