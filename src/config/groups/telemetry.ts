// Settings of OpenTelemetry and of the audit log. OpenTelemetry's specification defines the variables for traces.
import { decodePercent } from '../../platform/json.ts';
import { anyText, baseUrl, flag, oneOf, type Rule } from '../rules.ts';
import { defineSetting, type Read, readAll } from '../setting.ts';

/** The subset of W3C Baggage that OpenTelemetry uses for settings. */
const pairs: Rule<Readonly<Record<string, string>>> = {
  parse(text) {
    const entries = text.split(',').map((pair) => /^\s*([^=\s]+)\s*=(.*)$/s.exec(pair));
    const isRight = entries.every(
      (entry) => entry !== null && decodePercent(entry[0]) !== undefined,
    );
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

const overHttp = {
  ...protocols,
  explain: (text: string) =>
    text === 'grpc'
      ? 'Traces are sent over HTTP, which collectors usually accept on port 4318.'
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

const endpoint = defineSetting('OTEL_EXPORTER_OTLP_ENDPOINT', baseUrl, {
  summary: 'The OpenTelemetry collector that gets a trace of each request.',
  details:
    'For example `http://localhost:4318`; `/v1/traces` is added. If unset, nothing is traced, and OpenTelemetry is not loaded. See [Operations](operations/logs.md#traces).',
});

const collectorSettings = {
  protocol: defineSetting('OTEL_EXPORTER_OTLP_PROTOCOL', overHttp, {
    default: 'http/protobuf',
    summary: 'The protocol for sending traces.',
  }),
  headers: defineSetting('OTEL_EXPORTER_OTLP_HEADERS', pairs, {
    default: {},
    written: '',
    summary: 'Headers for the collector, such as `authorization=Basic%20…`.',
    details: 'Pairs `name=value` with commas between them; values are percent-encoded.',
    isSecret: true,
  }),
  serviceName: defineSetting('OTEL_SERVICE_NAME', anyText, {
    default: 'postern',
    summary: 'The name of the service in traces.',
  }),
  resourceAttributes: defineSetting('OTEL_RESOURCE_ATTRIBUTES', pairs, {
    default: {},
    written: '',
    summary: 'Further attributes of the service, such as `deployment.environment.name=production`.',
    details: 'Pairs `name=value` with commas between them; values are percent-encoded.',
    hidesValues: true,
  }),
};

const sampler = defineSetting('OTEL_TRACES_SAMPLER', samplers, {
  default: 'parentbased_always_on',
  summary: 'Which requests are traced.',
  details:
    '`parentbased_…` follows callers that say whether their trace is recorded; the rest of the name applies to traces that begin here.',
});

const samplerArgument = defineSetting('OTEL_TRACES_SAMPLER_ARG', ratio, {
  default: 1,
  summary: 'The share of requests for `…traceidratio`.',
});

export const tracingSettings = { endpoint, ...collectorSettings, sampler, samplerArgument };

/** `collector` is undefined if tracing is off. */
export type TracingConfig = Readonly<ReturnType<typeof readTracingConfig>>;
export type CollectorConfig = NonNullable<TracingConfig['collector']>;

export function readTracingConfig(read: Read) {
  const url = read(endpoint);
  if (url === undefined) return { collector: undefined };
  const [name, argument] = [read(sampler), read(samplerArgument)];
  const fixed = name.endsWith('always_on') ? 1 : 0;
  return {
    collector: {
      /** The URL to which spans are posted. */
      url: `${url}/v1/traces`,
      ...readAll(collectorSettings, read),
      sampler: {
        /** The ratio of traces that are sampled among those that begin here. */
        ratio: name.endsWith('traceidratio') ? argument : fixed,
        /** True if the caller's sampling decision applies to traces that the caller began. */
        followsCaller: name.startsWith('parentbased_'),
      },
    },
  };
}

// Settings of the audit log, which records who did what.

/** `stdout` or `file:PATH`. */
type AuditDestination =
  | { readonly kind: 'stdout' }
  | { readonly kind: 'file'; readonly path: string };

const auditLog: Rule<AuditDestination> = {
  parse(text) {
    if (text === 'stdout') return { kind: 'stdout' };
    const [, path] = /^file:(.+)$/s.exec(text) ?? [];
    return path === undefined ? undefined : { kind: 'file', path };
  },
  allowed: 'stdout, or file: and a path, such as file:/var/log/postern/audit.log',
};

export const auditSettings = {
  destination: defineSetting('AUDIT_LOG', auditLog, {
    summary:
      'The destination of the audit log, which has a line of JSON for each login, registration, revocation and call.',
    details:
      '`stdout`, alongside the log, or `file:PATH`. It never contains a token or the value of an argument. See [Operations](operations/logs.md#audit-log).',
  }),
  required: defineSetting('AUDIT_REQUIRED', flag, {
    default: false,
    summary: 'Whether calls require a line in the audit log.',
    details:
      'With `true` each call first writes a line for its start; if that fails, it does not run and gets 503. Otherwise a full disk is reported in the log, and calls continue.',
  }),
  claims: defineSetting('AUDIT_CLAIMS', flag, {
    default: false,
    summary: 'Whether lines for calls have the groups and claims that rules name.',
    details:
      'With `true`, `postern rules replay` can show what changed rules would do to the calls in the log. See [Rules](rules.md#replay-past-calls).',
  }),
};
