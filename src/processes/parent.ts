import { flushCompileCache } from 'node:module';
import { Socket } from 'node:net';

// The side of a child process of the service: `Child` is the other one.

/** A message to the service: the answer to its request, or something beside it. */
export type ToService<Answer, Event> = { readonly answer: Answer } | { readonly event: Event };

/** The file descriptor of the first channel that a process inherits. 3 is the channel of messages. */
export const FIRST_CHANNEL = 4;

/** Returns a channel that this process inherited beside that of messages. */
export function inheritedChannel(index = 0): Socket {
  return new Socket({ fd: FIRST_CHANNEL + index });
}

/**
 * Takes the messages of the service in a child process of it, which is killed when the service exits. Signals to the process
 * group are left to the service.
 */
export function serveParent<Request>(
  take: (message: Request, channel?: Socket) => void | Promise<void>,
  kill = killThisProcess,
): void {
  process.on('disconnect', kill);
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => undefined);
  process.on('message', (message: unknown, channel: unknown) => void take(message as Request, channel as Socket));
  // Most are killed in the end, and would save no compiled code for the next start.
  process.once('message', () => setImmediate(flushCompileCache));
}

/** Sends a message to the service. Ignores that it has exited: the process is killed then. */
export function tellParent<Answer, Event>(message: ToService<Answer, Event>): void {
  process.send?.(message, undefined, undefined, () => undefined);
}

function killThisProcess(): void {
  process.kill(process.pid, 'SIGKILL');
}
