// With what doctor asks: requests that go out as the gateway's do, and what is noted of the answers.
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

/** Runs what asks with them, and closes their connections behind it. */
export async function useInstruments(
  outbound: OutboundConfig,
  token: string | undefined,
  run: (instruments: Instruments) => Promise<void>,
): Promise<void> {
  // Behind one address may stand several replicas: a new connection may reach another one.
  const network = openOutboundNetwork({ outbound, keepsConnections: false });
  try {
    await run(createInstruments(outbound, token, network));
  } finally {
    network.close();
  }
}

function createInstruments(
  outbound: OutboundConfig,
  /** A user's. A secret. */
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
      /** The address at which the browser would go on; undefined where it would not. */
      location:
        location !== null && URL.canParse(location, url) ? new URL(location, url) : undefined,
      text: body.toString('utf8'),
      /** Undefined where the body is no JSON object. */
      json: parseObject(body),
      milliseconds: Math.round(clock.monotonic() - start),
    };
  };
  return {
    probe,
    clocks,
    tunnel: openTunnel,
    clock,
    /** The log of the gateway's parts: nothing of it is printed. */
    log: createCollectingLog().log,
    token,
    /** True where requests to a URL go out by a proxy, which then resolves names. */
    isProxied: (url: string) => chooseProxy(new URL(url)) !== undefined,
  };
}

export interface LogEntry {
  readonly level: LogLevel;
  readonly message: string;
  readonly facts: Facts;
}

/** For parts of the gateway that report what they found in the log only. */
export function createCollectingLog() {
  const entries: LogEntry[] = [];
  const collectAt =
    (level: LogLevel) =>
    (message: string, facts: Facts = {}): void =>
      void entries.push({ level, message, facts });
  const log: Log = {
    error: collectAt('error'),
    warn: collectAt('warn'),
    info: collectAt('info'),
    debug: () => {},
  };
  return { log, entries };
}

/** Asks, and takes the answer as it is: redirects are answers, too. @throws FetchError */
export type Probe = Instruments['probe'];

export type ProbeAnswer = Awaited<ReturnType<Probe>>;

const LIMITS = { timeoutMs: 10_000, maxBytes: 1_048_576, acceptsRedirects: true };

const RESOLUTION_MS = 1000;

/** Clocks of other machines, as the Date header of their answers tells them (RFC 9110 §6.6.1). */
function observeClocks(fetch: Fetch, clock: Clock) {
  const offsets = new Map<string, number>();
  const observingFetch: Fetch = async (url, init) => {
    const sent = clock.now();
    const response = await fetch(url, init);
    const date = Date.parse(response.headers.get('date') ?? '');
    if (!Number.isNaN(date)) {
      // The header has whole seconds, and was written at some moment between then and now.
      const least = (date - clock.now()) / 1000;
      const most = (date + RESOLUTION_MS - sent) / 1000;
      offsets.set(new URL(url).origin, least > 0 ? least : Math.min(most, 0));
    }
    return response;
  };
  return {
    fetch: observingFetch,
    /**
     * The number of seconds by which the clock that answers at this URL is ahead of the one here, negative where it is behind; 0 where
     * they may be the same. Undefined where no answer told the time.
     */
    readOffset: (url: string) => offsets.get(new URL(url).origin),
  };
}

/** Characters. */
const MAX_LENGTH = 300;

/** Reads what a page says, without its tags. In time that grows with its length alone: the other side may be hostile. */
export const readHeaderWords = (html: string): string =>
  dropUnread(html)
    .replace(/<[^<>]*>/g, ' ')
    .replace(/&#0?39;|&quot;/g, "'")
    .replace(/[^\x21-\x7e]+/g, ' ')
    // Our own state, which some pages repeat.
    .replace(/ state ?:? ?[\w-]{43}/, '')
    .trim()
    .slice(0, MAX_LENGTH);

/** Elements whose text nobody reads. From the first that does not end, the page stays as it is. */
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

// Reasons why another server could not be reached, in words.

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
    // A server that wants TLS resets plain HTTP.
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
