import type { IncomingHttpHeaders } from 'node:http';
import type { Agent, Dispatcher } from 'undici';
import { ResponseBody } from './response-body.ts';

/** One request to a server, which is not redirected. */
export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** How long the server may be silent, or as good as, in milliseconds. */
  readonly idleTimeoutMs: number;
}

/** The beginning of an answer. Its body is read, or let go of. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: ResponseBody;
}

/** Sends a request and resolves when the headers of the answer are there. Rejects with what undici or the guard throws. */
export function exchange(agent: Agent, request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
  const { url, method, headers, body = null, idleTimeoutMs } = request;
  const handler = new AnswerHandler(idleTimeoutMs, signal);
  agent.dispatch(
    {
      origin: url.origin,
      path: url.pathname + url.search,
      method,
      headers,
      body,
      headersTimeout: idleTimeoutMs,
      bodyTimeout: 0, // The body has a watch of its own.
    },
    handler,
  );
  return handler.answer;
}

/** Turns what undici tells of one request into an answer. */
class AnswerHandler implements Dispatcher.DispatchHandler {
  readonly #answer = Promise.withResolvers<HttpAnswer>();
  readonly #idleTimeoutMs: number;
  readonly #signal: AbortSignal;
  #controller: Dispatcher.DispatchController | null = null;
  #body: ResponseBody | null = null;
  #ended = false;

  constructor(idleTimeoutMs: number, signal: AbortSignal) {
    this.#idleTimeoutMs = idleTimeoutMs;
    this.#signal = signal;
    if (signal.aborted) this.#abort();
    else signal.addEventListener('abort', this.#abort, { once: true });
  }

  get answer(): Promise<HttpAnswer> {
    return this.#answer.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#ended) controller.abort(new Error('nobody waits for the answer'));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    const body = new ResponseBody(
      {
        pause: () => controller.pause(),
        resume: () => controller.resume(),
        abort: (reason) => controller.abort(reason),
      },
      this.#idleTimeoutMs,
    );
    this.#body = body;
    this.#answer.resolve({ status, headers, body });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    this.#end();
    this.#body?.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end();
    this.#answer.reject(error);
    this.#body?.fail(error);
  }

  readonly #abort = (): void => {
    this.#end();
    const reason = this.#signal.reason instanceof Error ? this.#signal.reason : new Error('the request was aborted');
    this.#answer.reject(this.#signal.reason);
    this.#body?.fail(this.#signal.reason);
    this.#controller?.abort(reason);
  };

  #end(): void {
    this.#ended = true;
    this.#signal.removeEventListener('abort', this.#abort);
  }
}
