// OpenTelemetry: where traces go. The variables are those of its specification.
import { isPercentDecodable } from '../../platform/json.ts';
import { anyText, baseUrl, oneOf, type Rule } from '../rules.ts';
import { defineSetting, type Read } from '../setting.ts';

export interface TracingConfig {
  /** Undefined where nothing is traced. */
  readonly collector: CollectorConfig | undefined;
}

export interface CollectorConfig {
  /** Where spans are posted. */
  readonly url: string;
  readonly protocol: 'http/protobuf' | 'http/json';
  /** May be secret. */
  readonly headers: Pairs;
  readonly serviceName: string;
  readonly resourceAttributes: Pairs;
  readonly sampler: {
    /** Of the traces that begin here. */
    readonly ratio: number;
    /** Whether a trace that the caller began is recorded if the caller's part is. */
    readonly followsCaller: boolean;
  };
}

type Pairs = Readonly<Record<string, string>>;

/** W3C Baggage, as far as OpenTelemetry uses it for settings. */
const pairs: Rule<Pairs> = {
  parse(text) {
    const entries = text.split(',').map((pair) => /^\s*([^=\s]+)\s*=(.*)$/s.exec(pair));
    const isRight = entries.every((entry) => entry !== null && isPercentDecodable(entry[0]));
    if (!isRight) return undefined;
    return Object.fromEntries(
      entries.map((entry) => [
        decodeURIComponent(entry?.[1] ?? ''),
        decodeURIComponent(entry?.[2]?.trim() ?? ''),
      ]),
    );
  },
  allowed: 'name=value pairs with commas between them, the values percent-encoded',
};

const protocols = oneOf('http/protobuf', 'http/json');

const protocol: typeof protocols = {
  ...protocols,
  explain: (text) =>
    text === 'grpc'
      ? 'Traces are sent over HTTP, which collectors usually take at port 4318.'
      : undefined,
};

const samplers = oneOf(
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
  'always_on',
  'always_off',
  'traceidratio',
);

const ratio: Rule<number> = {
  parse: (text) => (/^(0(\.\d+)?|1(\.0+)?)$/.test(text) ? Number(text) : undefined),
  allowed: 'a number from 0 to 1',
};

const NO_PAIRS: { readonly value: Pairs; readonly text: string } = { value: {}, text: '' };

export const tracingSettings = {
  endpoint: defineSetting('OTEL_EXPORTER_OTLP_ENDPOINT', baseUrl, {
    summary: 'The OpenTelemetry collector that gets a trace of each request.',
    details:
      'Such as `http://localhost:4318`; `/v1/traces` is added. If unset, nothing is traced, and nothing of OpenTelemetry is loaded. See [Operations](operations/logs.md#traces).',
  }),
  exportProtocol: defineSetting('OTEL_EXPORTER_OTLP_PROTOCOL', protocol, {
    default: { value: 'http/protobuf' },
    summary: 'How traces are sent.',
  }),
  headers: defineSetting('OTEL_EXPORTER_OTLP_HEADERS', pairs, {
    default: NO_PAIRS,
    summary: 'Headers for the collector, such as `authorization=Basic%20…`.',
    details: 'Pairs `name=value` with commas between them; values are percent-encoded.',
    isSecret: true,
  }),
  serviceName: defineSetting('OTEL_SERVICE_NAME', anyText, {
    default: { value: 'postern' },
    summary: 'What the service is called in traces.',
  }),
  resourceAttributes: defineSetting('OTEL_RESOURCE_ATTRIBUTES', pairs, {
    default: NO_PAIRS,
    summary: 'What else is said of it, such as `deployment.environment.name=production`.',
    details: 'Pairs `name=value` with commas between them; values are percent-encoded.',
    hidesValues: true,
  }),
  sampler: defineSetting('OTEL_TRACES_SAMPLER', samplers, {
    default: { value: 'parentbased_always_on' },
    summary: 'Which requests are traced.',
    details:
      '`parentbased_…` follows callers that say whether their trace is recorded; the rest of the name is about traces that begin here.',
  }),
  samplerArgument: defineSetting('OTEL_TRACES_SAMPLER_ARG', ratio, {
    default: { value: 1 },
    summary: 'The share of requests for `…traceidratio`.',
  }),
};

export function readTracingConfig(read: Read): TracingConfig {
  const endpoint = read(tracingSettings.endpoint);
  if (endpoint === undefined) return { collector: undefined };
  const sampler = read(tracingSettings.sampler);
  return {
    collector: {
      url: `${endpoint}/v1/traces`,
      protocol: read(tracingSettings.exportProtocol),
      headers: read(tracingSettings.headers),
      serviceName: read(tracingSettings.serviceName),
      resourceAttributes: read(tracingSettings.resourceAttributes),
      sampler: {
        ratio: chooseRatio(sampler, read(tracingSettings.samplerArgument)),
        followsCaller: sampler.startsWith('parentbased_'),
      },
    },
  };
}

function chooseRatio(sampler: string, argument: number): number {
  if (sampler.endsWith('traceidratio')) return argument;
  return sampler.endsWith('always_on') ? 1 : 0;
}
