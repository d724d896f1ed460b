// Tools of the checks: requests that leave this machine as the gateway's do, observed clocks, and explanations of network
// failures.
import { type Clock, systemClock } from '../../platform/clock.ts';
import { getErrorCode } from '../../platform/error-code.ts';
import {
  type Fetch,
  FetchError,
  type FetchInit,
  fetchWithLimits,
} from '../../platform/fetch-with-limits.ts';
import { parseObject } from '../../platform/json.ts';
import { describeCause, type Facts, type Log, type LogLevel } from '../../platform/log.ts';
import {
  type OutboundNetwork,
  openOutboundNetwork,
} from '../../platform/outbound/outbound-network.ts';
import { createProxyChoice, type OutboundConfig } from '../../platform/outbound/proxy-choice.ts';

export type Instruments = ReturnType<typeof createInstruments>;

/** Runs the checks with the instruments, and then closes their connections. */
export async function useInstruments(
  outbound: OutboundConfig,
  token: string | undefined,
  run: (instruments: Instruments) => Promise<void>,
): Promise<void> {
  // An address may have several replicas: a new connection may reach another one.
  const network = openOutboundNetwork({ outbound, keepsConnections: false });
  try {
    await run(createInstruments(outbound, token, network));
  } finally {
    network.close();
  }
}

function createInstruments(
  outbound: OutboundConfig,
  /** A user's access token, which is secret. */
  token: string | undefined,
  { fetch, openTunnel }: OutboundNetwork,
) {
  const clock = systemClock;
  const clocks = observeClocks(fetch, clock);
  const chooseProxy = createProxyChoice(outbound);
  const probe = async (url: string, init: FetchInit = {}) => {
    const start = clock.monotonic();
    const { body, ...answer } = await fetchWithLimits(clocks.fetch, url, init, LIMITS);
    const location = answer.headers.get('location');
    return {
      url,
      ...answer,
      /** The address that a browser would follow; undefined without a redirect. */
      location:
        location !== null && URL.canParse(location, url) ? new URL(location, url) : undefined,
      text: body.toString('utf8'),
      /** Undefined if the body is not a JSON object. */
      json: parseObject(body),
      milliseconds: Math.round(clock.monotonic() - start),
    };
  };
  return {
    probe,
    clocks,
    tunnel: openTunnel,
    clock,
    /** The log of the gateway's parts, which is not printed. */
    log: createCollectingLog().log,
    token,
    /** True if requests to the URL use a proxy, which then resolves names. */
    isProxied: (url: string) => chooseProxy(new URL(url)) !== undefined,
  };
}

export interface LogEntry {
  readonly level: LogLevel;
  readonly message: string;
  readonly facts: Facts;
}

/** For parts of the gateway that report their findings only in the log. */
export function createCollectingLog() {
  const entries: LogEntry[] = [];
  const collectAt =
    (level: LogLevel) =>
    (message: string, facts: Facts = {}): void =>
      void entries.push({ level, message, facts });
  const [error, warn, info] = [collectAt('error'), collectAt('warn'), collectAt('info')];
  const log: Log = { error, warn, info, debug: () => {} };
  return { log, entries };
}

/** Sends a request and returns the response as it is: redirects are not followed. @throws FetchError */
export type Probe = Instruments['probe'];

export type ProbeAnswer = Awaited<ReturnType<Probe>>;

const LIMITS = { timeoutMs: 10_000, maxBytes: 1_048_576, acceptsRedirects: true };

const RESOLUTION_MS = 1000;

/** Observes the clocks of other machines by the Date header of their responses (RFC 9110 §6.6.1). */
function observeClocks(fetch: Fetch, clock: Clock) {
  const offsets = new Map<string, number>();
  const observingFetch: Fetch = async (url, init) => {
    const sent = clock.now();
    const response = await fetch(url, init);
    const date = Date.parse(response.headers.get('date') ?? '');
    if (!Number.isNaN(date)) {
      // The header has a resolution of one second, and was written at some moment between request and response.
      const least = (date - clock.now()) / 1000;
      const most = (date + RESOLUTION_MS - sent) / 1000;
      offsets.set(new URL(url).origin, least > 0 ? least : Math.min(most, 0));
    }
    return response;
  };
  return {
    fetch: observingFetch,
    /**
     * The number of seconds by which the clock at this URL is ahead of this machine's, negative if it is behind; 0 if both may
     * agree. Undefined if no response had a date.
     */
    readOffset: (url: string) => offsets.get(new URL(url).origin),
  };
}

/** In characters. */
const MAX_LENGTH = 300;

/** Extracts the text of a page, without its tags. Takes linear time: the server may be hostile. */
export const readHeaderWords = (html: string): string =>
  dropUnread(html)
    .replace(/<[^<>]*>/g, ' ')
    .replace(/&#0?39;|&quot;/g, "'")
    .replace(/[^\x21-\x7e]+/g, ' ')
    // Removes our own state parameter, which some pages repeat.
    .replace(/ state ?:? ?[\w-]{43}/, '')
    .trim()
    .slice(0, MAX_LENGTH);

/** Drops elements whose text is not visible. If one of them is not closed, the rest of the page is kept. */
function dropUnread(html: string) {
  const opening = /<(script|style|head)\b/gi;
  let kept = '';
  let from = 0;
  for (let open = opening.exec(html); open !== null; open = opening.exec(html)) {
    const closing = new RegExp(`</${open[1]}>`, 'gi');
    closing.lastIndex = opening.lastIndex;
    if (closing.exec(html) === null) break;
    kept += `${html.slice(from, open.index)} `;
    from = closing.lastIndex;
    opening.lastIndex = from;
  }
  return kept + html.slice(from);
}

// Explains why another server could not be reached.

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

/** `describe` returns a sentence; `reason` is the system's message. */
type Sign = readonly [
  pattern: RegExp,
  kind: FailureKind,
  describe: (url: URL, reason: string) => string,
  scheme?: 'http:',
];

/** The first match counts. */
const SIGNS: readonly Sign[] = [
  [
    /\bProxyError\b/,
    'proxy',
    ({ host }, reason) =>
      `The outbound proxy did not let a request to ${host} through (${reason}).`,
  ],
  [
    /ENOTFOUND|EAI_AGAIN|ENODATA/,
    'name',
    ({ hostname }) => `The name ${hostname} cannot be resolved here (DNS).`,
  ],
  [
    /CERT_HAS_EXPIRED/,
    'certificate-expired',
    ({ host }) => `The TLS certificate of ${host} has expired.`,
  ],
  [
    /ALTNAME_INVALID/,
    'certificate-name',
    ({ host, hostname }, reason) =>
      `The TLS certificate of ${host} is not for ${hostname} (${/DNS:.*/.exec(reason)?.[0] ?? reason}).`,
  ],
  [
    /CERT|SELF_SIGNED|UNABLE_TO_/,
    'certificate',
    ({ host }, reason) => `The TLS certificate of ${host} is not trusted here (${reason}).`,
  ],
  [/ECONNREFUSED/, 'refused', ({ host }) => `Nothing listens at ${host}.`],
  [/aborted due to timeout/, 'timeout', ({ host }) => `${host} does not answer in time.`],
  [
    /ETIMEDOUT|ENETUNREACH|EHOSTUNREACH/,
    'timeout',
    ({ host }, reason) => `${host} cannot be reached (${reason}).`,
  ],
  [/SSL|EPROTO|wrong version/i, 'no-tls', ({ host }) => `${host} does not speak TLS there.`],
  // A server that expects TLS resets a plain HTTP connection.
  [/ECONNRESET/, 'tls-only', ({ host }) => `${host} does not speak plain HTTP there.`, 'http:'],
];

export function describeNetworkFailure(error: unknown, url: string) {
  const address = new URL(url);
  // A FetchError only names the URL, which may contain any words.
  const cause = error instanceof FetchError ? error.cause : error;
  const reason = describeCause(cause);
  const signs = [reason, ...listCodes(cause)].join(' ');
  const [
    ,
    kind = 'other',
    describe = ({ host }: URL) => `${host} could not be reached (${reason}).`,
  ] =
    SIGNS.find(
      ([pattern, , , scheme = address.protocol]) =>
        scheme === address.protocol && pattern.test(signs),
    ) ?? [];
  return { kind, text: describe(address, reason) };
}

/** Includes the codes of all causes, which Node.js nests in several ways. */
function listCodes(error: unknown, depth = 0): readonly string[] {
  if (!(error instanceof Error) || depth > 5) return [];
  const others = error instanceof AggregateError ? error.errors : [];
  return [
    getErrorCode(error) ?? '',
    error.name,
    ...[error.cause, ...others].flatMap((cause) => listCodes(cause, depth + 1)),
  ];
}
