// Ends a test file in which nothing happens any more, and says what it waits for: `--import=./test/support/hang-watch.ts?minutes=45`.
// Node bounds tests alone: a hook that waits for ever, or a server that a failed test left open, would hold up the whole run.
import { subscribe } from 'node:diagnostics_channel';
import { relative } from 'node:path';
import { report } from 'node:process';
import { isMainThread } from 'node:worker_threads';
import { commandOf, descendantsOf, kill } from './process-tree.ts';

const MAX_SILENCE_MS = Number(new URL(import.meta.url).searchParams.get('minutes')) * 60_000;

/** The part of a diagnostic report (`process.report`) that is used here. */
interface DiagnosticReport {
  readonly libuv: readonly { readonly type: string; readonly is_active: boolean; readonly is_referenced: boolean }[];
}

/** Fields of open handles, in a diagnostic report, that tell them apart. */
const SHOWN_FIELDS = ['type', 'localEndpoint', 'remoteEndpoint', 'host', 'port', 'fd', 'pid', 'firesInMsFromNow'];

/** Names of suites and tests that have begun and not finished, outermost first. */
const running = new Map<object, string>();

if (isMainThread && process.env['NODE_TEST_CONTEXT'] !== undefined) {
  const timer = setTimeout(endFile, MAX_SILENCE_MS).unref();
  subscribe('tracing:node.test:start', (test) => {
    timer.refresh();
    running.set(test as object, (test as { readonly name: string }).name);
  });
  subscribe('tracing:node.test:end', (test) => {
    timer.refresh();
    running.delete(test as object);
  });
}

function endFile(): void {
  const processes = descendantsOf(process.pid);
  const lines = [
    `${relative('', process.argv[1] ?? '')}: nothing has happened for ${MAX_SILENCE_MS / 60_000} minutes.`,
    `Running: ${[...running.values()].join(' > ') || 'no test; the file waits for what is open'}.`,
    ...openHandles().map((handle) => `Open: ${JSON.stringify(handle, SHOWN_FIELDS)}`),
    ...processes.map((pid) => `Process ${pid}: ${commandOf(pid)}`),
  ];
  console.error(lines.join('\n'));
  // A process that has this one's standard output would keep the runner waiting.
  for (const pid of processes) kill(pid);
  process.exit(1);
}

/** Returns what keeps the process alive: timers, sockets with their addresses, pipes, children. */
function openHandles(): readonly object[] {
  // Names of hosts would be asked for. The types lack the field.
  Object.assign(report, { excludeNetwork: true });
  const { libuv } = report.getReport() as unknown as DiagnosticReport;
  return libuv.filter((handle) => handle.is_active && handle.is_referenced);
}
