import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

/** A span as OTLP writes it in JSON; times are nanoseconds since 1970, as text. */
export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[];
  readonly events: readonly { readonly name: string; readonly timeUnixNano: string }[];
  readonly status: { readonly code?: number };
}

/** A collector that keeps what it is sent. */
export interface OtlpReceiver {
  readonly endpoint: string;
  readonly spans: OtlpSpan[];
  /** The names of the services that sent something. */
  readonly services: Set<string>;
}

/** Starts a collector of OTLP over HTTP that answers every export with a status. It is gone when the test is. */
export async function startOtlpReceiver(t: TestContext, { status = 200 } = {}): Promise<OtlpReceiver> {
  const spans: OtlpSpan[] = [];
  const services = new Set<string>();
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    if (request.method === 'POST' && request.url === '/v1/traces') keep(JSON.parse(body) as Export, spans, services);
    response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, services };
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: OtlpSpan['attributes'] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

function keep({ resourceSpans }: Export, spans: OtlpSpan[], services: Set<string>): void {
  for (const { resource, scopeSpans } of resourceSpans) {
    services.add(String(attributeOf(resource, 'service.name')));
    for (const scope of scopeSpans) spans.push(...scope.spans);
  }
}

/** The value of an attribute, whatever its type. */
export function attributeOf({ attributes }: Pick<OtlpSpan, 'attributes'>, key: string): unknown {
  const value = attributes.find((attribute) => attribute.key === key)?.value;
  return value === undefined ? undefined : Object.values(value)[0];
}
