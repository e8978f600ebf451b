/** Syncs of folders that are under way, and those that begin when they end. */
const syncing = new Map<string, Promise<void>>();
const following = new Map<string, Promise<void>>();

/**
 * Syncs the folder that `key` stands for. Whoever asks while it is being synced shares the next sync: the one under way
 * may have begun before the name was there.
 */
export function shareSync(key: string, sync: () => Promise<void>): Promise<void> {
  const next = following.get(key);
  if (next !== undefined) return next;
  const current = syncing.get(key);
  return current === undefined ? startSync(key, sync) : followSync(key, current, sync);
}

function followSync(key: string, current: Promise<void>, sync: () => Promise<void>): Promise<void> {
  const next = current.catch(() => undefined).then(() => startSync(key, sync));
  following.set(key, next);
  return next;
}

function startSync(key: string, sync: () => Promise<void>): Promise<void> {
  following.delete(key);
  const started = sync().finally(() => syncing.delete(key));
  syncing.set(key, started);
  return started;
}
