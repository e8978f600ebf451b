import { mkdtemp, rm } from 'node:fs/promises';
import type { LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import { DeniedNetworks } from '#inputs/guarded-request.ts';
import { HttpClient } from '#inputs/http/http-client.ts';

export interface ClientWishes {
  readonly denied?: readonly string[];
  readonly idleTimeoutMs?: number;
  readonly maxBytes?: number;
  readonly lookup?: LookupFunction;
}

/** A generous bound: it is passed only where something hangs. */
const HANG_MS = 600_000;

export function newClient({ denied = [], idleTimeoutMs = HANG_MS, maxBytes = 1024 ** 4, lookup }: ClientWishes = {}) {
  return new HttpClient({
    denied: new DeniedNetworks(denied),
    idleTimeoutMs,
    maxBytes,
    ...(lookup !== undefined && { lookup }),
  });
}

/** A client whose connections end with the test. */
export function clientFor(t: TestContext, wishes: ClientWishes = {}): HttpClient {
  const client = newClient(wishes);
  t.after(() => client.close());
  return client;
}

/** A scratch space in a folder of its own, with what is in it. */
export async function newScratch(): Promise<{ scratch: ScratchSpace; dir: string; remove: () => Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'attestream-http-'));
  const scratch = new ScratchSpace({ dir, dataDir: '/data' }, { jobId: 'job', inputIndex: 0, attempt: 1 });
  return { scratch, dir, remove: () => rm(dir, { recursive: true, force: true }) };
}

/** A scratch space that goes with the test. */
export async function scratchFor(t: TestContext): Promise<{ scratch: ScratchSpace; dir: string }> {
  const { remove, ...made } = await newScratch();
  t.after(remove);
  return made;
}
