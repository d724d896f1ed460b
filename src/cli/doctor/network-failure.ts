// Why another server could not be reached, in words.
import { getErrorCode } from '../../platform/error-code.ts';
import { FetchError } from '../../platform/fetch-with-limits.ts';
import { describeCause } from '../../platform/log.ts';

export type FailureKind =
  | 'name'
  | 'refused'
  | 'timeout'
  | 'certificate-expired'
  | 'certificate-name'
  | 'certificate'
  | 'no-tls'
  | 'tls-only'
  | 'proxy'
  | 'other';

interface Sign {
  readonly pattern: RegExp;
  readonly kind: FailureKind;
  /** A sentence. `reason` is what the system says. */
  readonly describe: (url: URL, reason: string) => string;
  readonly scheme?: 'http:';
}

/** The first that fits counts. */
const SIGNS: readonly Sign[] = [
  {
    pattern: /\bProxyError\b/,
    kind: 'proxy',
    describe: ({ host }, reason) =>
      `The outbound proxy did not let a request to ${host} through (${reason}).`,
  },
  {
    pattern: /ENOTFOUND|EAI_AGAIN|ENODATA/,
    kind: 'name',
    describe: ({ hostname }) => `The name ${hostname} cannot be resolved here (DNS).`,
  },
  {
    pattern: /CERT_HAS_EXPIRED/,
    kind: 'certificate-expired',
    describe: ({ host }) => `The TLS certificate of ${host} has expired.`,
  },
  {
    pattern: /ALTNAME_INVALID/,
    kind: 'certificate-name',
    describe: ({ host, hostname }, reason) =>
      `The TLS certificate of ${host} is not for ${hostname} (${/DNS:.*/.exec(reason)?.[0] ?? reason}).`,
  },
  {
    pattern: /CERT|SELF_SIGNED|UNABLE_TO_/,
    kind: 'certificate',
    describe: ({ host }, reason) =>
      `The TLS certificate of ${host} is not trusted here (${reason}).`,
  },
  {
    pattern: /ECONNREFUSED/,
    kind: 'refused',
    describe: ({ host }) => `Nothing listens at ${host}.`,
  },
  {
    pattern: /aborted due to timeout/,
    kind: 'timeout',
    describe: ({ host }) => `${host} does not answer in time.`,
  },
  {
    pattern: /ETIMEDOUT|ENETUNREACH|EHOSTUNREACH/,
    kind: 'timeout',
    describe: ({ host }, reason) => `${host} cannot be reached (${reason}).`,
  },
  {
    pattern: /SSL|EPROTO|wrong version/i,
    kind: 'no-tls',
    describe: ({ host }) => `${host} does not speak TLS there.`,
  },
  {
    // What a server that wants TLS does with plain HTTP.
    pattern: /ECONNRESET/,
    kind: 'tls-only',
    scheme: 'http:',
    describe: ({ host }) => `${host} does not speak plain HTTP there.`,
  },
];

export function describeNetworkFailure(error: unknown, url: string) {
  const address = new URL(url);
  // A FetchError says only that the URL failed, and the URL may have any words in it.
  const cause = error instanceof FetchError ? error.cause : error;
  const reason = describeCause(cause);
  const signs = [reason, ...listCodes(cause)].join(' ');
  const found = SIGNS.find(
    ({ pattern, scheme = address.protocol }) => scheme === address.protocol && pattern.test(signs),
  );
  return found === undefined
    ? { kind: 'other' as const, text: `${address.host} could not be asked (${reason}).` }
    : { kind: found.kind, text: found.describe(address, reason) };
}

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
