// Why another server could not be reached, in words.
import { getErrorCode } from '../../../core/errors/error-code.ts';
import { describeCause } from '../../../core/log.ts';

export type FailureKind =
  | 'name'
  | 'refused'
  | 'timeout'
  | 'certificate'
  | 'no-tls'
  | 'proxy'
  | 'other';

export interface NetworkFailure {
  readonly kind: FailureKind;
  /** A sentence. */
  readonly text: string;
}

const KINDS: readonly (readonly [
  sign: RegExp,
  kind: FailureKind,
  describe: (host: string) => string,
])[] = [
  [
    /ENOTFOUND|EAI_AGAIN|ENODATA/,
    'name',
    (host) => `The name ${host} cannot be resolved here (DNS).`,
  ],
  [
    /the proxy answered|Proxy response|proxy/i,
    'proxy',
    (host) => `The outbound proxy did not let a request to ${host} through.`,
  ],
  [/ECONNREFUSED/, 'refused', (host) => `Nothing listens at ${host}.`],
  [
    /ETIMEDOUT|TimeoutError|aborted due to timeout|UND_ERR_CONNECT_TIMEOUT|ENETUNREACH|EHOSTUNREACH/,
    'timeout',
    (host) => `${host} does not answer: it is down, or a firewall drops the packets.`,
  ],
  [
    /CERT|SELF_SIGNED|UNABLE_TO_|certificate|ALTNAME/,
    'certificate',
    (host) => `The TLS certificate of ${host} is not accepted.`,
  ],
  [/SSL|EPROTO|wrong version/i, 'no-tls', (host) => `${host} does not speak TLS there.`],
];

export function describeNetworkFailure(error: unknown, url: string): NetworkFailure {
  const { host, hostname } = new URL(url);
  const chain = [describeCause(error), ...listCodes(error)].join(' ');
  const reason = ` (${describeCause(error)})`;
  const found = KINDS.find(([sign]) => sign.test(chain));
  if (found === undefined) return { kind: 'other', text: `${host} could not be asked${reason}.` };
  const [, kind, describe] = found;
  const text = describe(kind === 'name' ? hostname : host);
  return { kind, text: CLEAR.has(kind) ? text : `${text.slice(0, -1)}${reason}.` };
}

/** What the system says of these adds nothing. */
const CLEAR: ReadonlySet<FailureKind> = new Set(['name', 'refused', 'no-tls']);

/** Those of the causes, too, which Node nests in several ways. */
function listCodes(error: unknown, depth = 0): readonly string[] {
  if (!(error instanceof Error) || depth > 5) return [];
  const code = getErrorCode(error);
  const others = error instanceof AggregateError ? error.errors : [];
  return [
    ...(typeof code === 'string' ? [code] : []),
    error.name,
    ...[error.cause, ...others].flatMap((cause) => listCodes(cause, depth + 1)),
  ];
}
