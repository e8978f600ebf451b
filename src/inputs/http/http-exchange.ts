import type { IncomingHttpHeaders } from 'node:http';
import type { Agent, Dispatcher } from 'undici';
import { AppError } from '#errors/app-error.ts';
import { shownAddress } from './http-address.ts';
import { ResponseBody } from './response-body.ts';

/** Early answers (1xx) before the answer proper. Each gives the server its time anew, so that they have to end. */
const MAX_EARLY_ANSWERS = 16;

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
  const handler = new AnswerHandler(request, signal);
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
  readonly #request: HttpRequest;
  readonly #signal: AbortSignal;
  #controller: Dispatcher.DispatchController | null = null;
  #body: ResponseBody | null = null;
  #earlyAnswers = 0;
  #ended = false;

  constructor(request: HttpRequest, signal: AbortSignal) {
    this.#request = request;
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
    if (status < 200) return this.#countEarlyAnswer(controller);
    const body = new ResponseBody(
      {
        pause: () => controller.pause(),
        resume: () => controller.resume(),
        abort: (reason) => controller.abort(reason),
      },
      this.#request.idleTimeoutMs,
    );
    this.#body = body;
    this.#answer.resolve({ status, headers, body });
  }

  #countEarlyAnswer(controller: Dispatcher.DispatchController): void {
    this.#earlyAnswers += 1;
    if (this.#earlyAnswers <= MAX_EARLY_ANSWERS) return;
    const problem = `it is preceded by more than ${MAX_EARLY_ANSWERS} early answers`;
    controller.abort(new AppError('HTTP_ANSWER_INVALID', { address: shownAddress(this.#request.url), problem }));
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
