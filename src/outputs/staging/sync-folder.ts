import { fsync } from 'node:fs';
import { promisify } from 'node:util';
import { Descriptor } from '#bytes/descriptor.ts';

const syncInBackground = promisify(fsync);

/** Syncs of folders that are running, and those that start when they end. */
const running = new Map<string, Promise<void>>();
const queued = new Map<string, Promise<void>>();

/** Makes the entries of a folder durable that no request chooses. Syncs of one folder are shared. */
export function syncFolder(folder: string): Promise<void> {
  return shareSync(folder, async () => {
    const opened = Descriptor.open(folder, 'r');
    try {
      await opened.use(syncInBackground);
    } finally {
      await opened.close();
    }
  });
}

/**
 * Syncs the folder that `key` stands for. Callers that ask while it is being synced share the next sync: the one that runs
 * may have started before their entry was there.
 */
export function shareSync(key: string, sync: () => Promise<void>): Promise<void> {
  const next = queued.get(key);
  if (next !== undefined) return next;
  const current = running.get(key);
  return current === undefined ? startSync(key, sync) : queueSync(key, current, sync);
}

function queueSync(key: string, current: Promise<void>, sync: () => Promise<void>): Promise<void> {
  const next = current.catch(() => undefined).then(() => startSync(key, sync));
  queued.set(key, next);
  return next;
}

function startSync(key: string, sync: () => Promise<void>): Promise<void> {
  queued.delete(key);
  const started = sync().finally(() => running.delete(key));
  running.set(key, started);
  return started;
}
