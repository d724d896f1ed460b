// A collector of OpenTelemetry that keeps what it gets.
import type { IncomingHttpHeaders } from 'node:http';
import { listenOnLoopback } from '../upstreams/listen.ts';

export interface CollectedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  /** As OTLP numbers them: 1 internal, 2 server, 3 client. */
  readonly kind: number;
  /** 2 is an error. */
  readonly status: number | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Ids of the spans that it has a link to. */
  readonly links: readonly string[];
  /** Of what sent it. */
  readonly resource: Readonly<Record<string, unknown>>;
  /** Milliseconds. */
  readonly duration: number;
}

export interface CollectorRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Collector {
  readonly url: string;
  /** Sends traces there, as JSON. */
  readonly env: Readonly<Record<string, string>>;
  readonly received: readonly CollectorRequest[];
  spans(): readonly CollectedSpan[];
  /** The one of this name; any other number of them fails the test. */
  only(name: string): CollectedSpan;
  close(): Promise<void>;
}

export async function startCollector(status = 200): Promise<Collector> {
  const received: CollectorRequest[] = [];
  const { url, close } = await listenOnLoopback(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    received.push({ path: req.url ?? '', headers: req.headers, body: Buffer.concat(chunks) });
    res.writeHead(status, { 'content-type': 'application/json' }).end('{}');
  });
  const origin = new URL(url).origin;
  const spans = () => received.flatMap(({ body }) => readSpans(JSON.parse(body.toString())));
  return {
    url: origin,
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: origin, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' },
    received,
    spans,
    only(name) {
      const found = spans().filter((span) => span.name === name);
      if (found.length !== 1 || found[0] === undefined) {
        const names = spans().map((span) => span.name);
        throw new Error(`${found.length} spans ${name} among ${names.join(', ')}`);
      }
      return found[0];
    },
    close,
  };
}

interface OtlpAttribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface OtlpTraces {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

interface OtlpSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly status?: { readonly code?: number };
  readonly attributes: readonly OtlpAttribute[];
  readonly links?: readonly { readonly spanId: string }[];
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}

const readSpans = ({ resourceSpans }: OtlpTraces): readonly CollectedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        ...span,
        parentSpanId: span.parentSpanId || undefined,
        status: span.status?.code,
        attributes: readAttributes(span.attributes),
        links: (span.links ?? []).map(({ spanId }) => spanId),
        resource: readAttributes(resource.attributes),
        duration: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
      })),
    ),
  );

const readAttributes = (attributes: readonly OtlpAttribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
