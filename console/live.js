import { addressOf, loginNeeded, poll } from './api.js';

/** The interval of asking while there is no stream, and while there is one: a proxy may keep its events back. */
const POLL_INTERVAL_MS = 2000;
const POLL_INTERVAL_WITH_STREAM_MS = 20_000;

/** The time after which a stream that was refused is opened again. One that broke off is opened again by the browser. */
const REOPEN_DELAY_MS = 10_000;

/**
 * Keeps a page current until the signal is aborted: by server-sent events, and where they fail by asking every two seconds. The
 * stream is closed while nobody sees the page, because browsers open six connections to a server at most.
 * @param {string} path of the stream
 * @param {Record<string, (data: any) => void>} events what to do with an event of each type
 * @param {() => Promise<void>} refresh asks for everything; also called when a stream was opened
 * @param {AbortSignal} signal
 */
export function follow(path, events, refresh, signal) {
  /** @type {EventSource | null} */
  let stream = null;
  let refreshedAtMs = Number.NEGATIVE_INFINITY;
  let reopenAtMs = 0;
  const refreshNow = () => {
    refreshedAtMs = performance.now();
    return refresh();
  };
  const close = () => {
    stream?.close();
    stream = null;
  };
  const open = () => {
    if (signal.aborted || document.hidden || stream !== null || performance.now() < reopenAtMs) return;
    const opened = new EventSource(addressOf(path));
    stream = opened;
    opened.addEventListener('open', () => void refreshNow());
    opened.addEventListener('error', () => {
      if (opened.readyState !== EventSource.CLOSED || stream !== opened) return;
      close();
      reopenAtMs = performance.now() + REOPEN_DELAY_MS;
    });
    for (const [type, handle] of Object.entries(events)) {
      opened.addEventListener(type, ({ data }) => handle(JSON.parse(data)));
    }
  };
  const onReturn = () => {
    if (document.hidden) return close();
    if (loginNeeded.value) return;
    open();
    void refreshNow();
  };
  /** A stream that was refused for want of a login is opened as soon as there is one. */
  const onLogin = (/** @type {boolean} */ isNeeded) => {
    reopenAtMs = 0;
    if (isNeeded) close();
    else open();
  };
  const look = async () => {
    if (loginNeeded.value) return close();
    open();
    const isLive = stream?.readyState === EventSource.OPEN;
    if (performance.now() - refreshedAtMs > (isLive ? POLL_INTERVAL_WITH_STREAM_MS : 0)) await refreshNow();
  };
  document.addEventListener('visibilitychange', onReturn, { signal });
  addEventListener('online', onReturn, { signal });
  const unsubscribe = loginNeeded.subscribe(onLogin);
  signal.addEventListener('abort', () => {
    unsubscribe();
    close();
  });
  void poll(look, POLL_INTERVAL_MS, signal);
}
