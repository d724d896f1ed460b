// §4.6, OAuth Client ID Metadata Document (draft): clients identified by an https URL. Their documents are fetched on demand, and cached as
// long as their host allows.

import type { IncomingHttpHeaders } from 'node:http';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import { rejectOnAbort } from '../../platform/cancellation.ts';
import type { Clock } from '../../platform/clock.ts';
import { readBody } from '../../platform/fetch-with-limits.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import {
  HostNotPublic,
  type Network,
  requestPublicHost,
} from '../../platform/outbound/public-network.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { createLogThrottle } from '../../platform/throttle.ts';
import type { VerificationKey } from '../auth/jwk.ts';
import { type KeyHint, selectCandidates } from '../auth/key-set.ts';
import {
  type ClientDocument,
  ClientDocumentRefused,
  createUnreachableError,
  type DocumentKeySource,
  type DocumentRules,
  failDocument,
  isClientDocumentId,
  parseClientDocument,
  parseClientIdUrl,
  parseDocumentKeys,
} from './client-document.ts';

const MAX_UNDER_WAY = 20;
/** Failures are cached only for a moment, against a flood of fetches by a flood of logins. */
const PAUSE_MS = 5000;
/** Maximum characters in a log line: anybody may send a long URL. */
const MAX_LOGGED = 400;

export type ClientDocuments = ReturnType<typeof createClientDocuments>;

export function createClientDocuments(
  { clock, log }: ClockAndLog,
  network: Network,
  rules: DocumentRules,
) {
  const { allowedHosts } = rules;
  const documents = createExpiringMap<ClientDocument>('clientDocuments', clock.monotonic);
  // Cached separately: made-up URLs that fail must not evict documents in use.
  const failures = createExpiringMap<ClientDocumentRefused>('clientDocuments', clock.monotonic);
  const loadOnce = createLoadOnce(
    load,
    'Too many client metadata documents are being fetched. Try again in a few seconds.',
  );
  const findKeys = createFindDocumentKeys(clock, network);
  const throttle = createLogThrottle(clock, (_kind, leftOut) =>
    log.info('More client metadata documents could not be used in the last minute.', { leftOut }),
  );

  async function load(url: URL) {
    try {
      const { headers, body } = await fetchDocument(url, network, clock);
      const document = parseClientDocument(url.href, body, rules);
      documents.set(url.href, document, clock.monotonic() + readLifetimeMs(headers, clock.now()));
      return document;
    } catch (refusal) {
      if (refusal instanceof ClientDocumentRefused) reportFailure(url, refusal);
      throw refusal;
    }
  }

  function reportFailure(url: URL, refusal: ClientDocumentRefused) {
    failures.set(url.href, refusal, clock.monotonic() + PAUSE_MS);
    // If any host may be named, most unreachable ones do not matter.
    const isOperators = refusal.isUnreachable && !allowedHosts.includes('*');
    const level = isOperators ? 'warn' : 'info';
    log[throttle.countLine(level) ? level : 'debug'](refusal.message.slice(0, MAX_LOGGED), {
      clientId: url.href.slice(0, MAX_LOGGED),
      cause: refusal.cause,
    });
  }

  async function findAny(clientId: string) {
    const parsed = parseClientIdUrl(clientId, allowedHosts);
    if (parsed.url === undefined) return failDocument(parsed.problem);
    const document = documents.get(clientId);
    if (document !== undefined) return document;
    const failure = failures.get(clientId);
    if (failure !== undefined) throw failure;
    return loadOnce(parsed.url);
  }

  return {
    /** True for a client ID that is an https URL, which `find` validates; most of them are not. */
    isClientDocumentId,
    /** True if such an ID may be used at all, whatever its document says now. */
    isAllowed: (clientId: string) => parseClientIdUrl(clientId, allowedHosts).url !== undefined,
    /**
     * The cached document, or a fetched one: up to 5 s.
     *
     * @throws ClientDocumentRefused if the URL, its host or its document is not accepted.
     */
    async find(clientId: string) {
      const document = await findAny(clientId);
      return document.token_endpoint_auth_method === 'none'
        ? document
        : failDocument(
            `The client's metadata document ${clientId} has a token_endpoint_auth_method other than none, the only one supported for it here.`,
          );
    },
    /** The same for a client with keys; returns the keys that may have signed what `hint` describes. */
    async findKeyed(clientId: string, hint: KeyHint) {
      const document = await findAny(clientId);
      return document.token_endpoint_auth_method === 'none'
        ? failDocument(
            `The client's metadata document ${clientId} names no token_endpoint_auth_method private_key_jwt.`,
          )
        : { document, keys: await findKeys(document.keys, hint) };
    },
  };
}

/** Single flight, with a limit of concurrent fetches. */
function createLoadOnce<Loaded>(load: (url: URL) => Promise<Loaded>, tooMany: string) {
  const loads = createSingleFlight<string, Loaded>();

  return function loadOnce(url: URL) {
    const isNew = loads.find(url.href) === undefined;
    if (isNew && loads.count() >= MAX_UNDER_WAY) failDocument(tooMany);
    return loads.run(url.href, () => load(url));
  };
}

// §4.6, RFC 9111 §4.2: freshness of a fetched document.

const DEFAULT_SECONDS = 300;
const MAX_SECONDS = 86_400;

/** Milliseconds, from 0 (not to be cached) to 24 hours. `now` in epoch milliseconds. */
function readLifetimeMs(headers: IncomingHttpHeaders, now: number) {
  const directives = (headers['cache-control'] ?? '').split(',').map((text) => text.trim());
  if (directives.some((directive) => /^no-(store|cache)(=|$)/i.test(directive))) return 0;
  // Takes the smallest; a value that is not a number counts as stale (RFC 9111 §4.2.1).
  const ages = directives
    .filter((directive) => /^max-age(=|$)/i.test(directive))
    .map((directive) => parseSeconds(directive.slice('max-age='.length)) ?? 0);
  const said = ages.length > 0 ? Math.min(...ages) : readSecondsUntilExpiry(headers, now);
  if (said === undefined) return DEFAULT_SECONDS * 1000;
  const left = said - (parseSeconds(headers.age) ?? 0);
  return Math.min(Math.max(left, 0), MAX_SECONDS) * 1000;
}

function readSecondsUntilExpiry({ expires, date }: IncomingHttpHeaders, now: number) {
  if (expires === undefined) return undefined;
  const end = Date.parse(expires);
  const sent = Date.parse(date ?? '');
  return Number.isNaN(end) ? 0 : (end - (Number.isNaN(sent) ? now : sent)) / 1000;
}

const parseSeconds = (text = '') => {
  const digits = /^"?(\d+)"?$/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
};

// RFC 7591 §2, RFC 7517: keys of a client identified by its document. They are fetched in the same way: anybody may have named
// their host.

/** A withdrawn key is accepted for this long. */
const FRESH_KEYS_MS = 300_000;
/** At most one fetch for unknown key IDs in this time. */
const COOL_DOWN_MS = 10_000;

interface KeptKeys {
  /** Undefined if they are unavailable. */
  readonly keys: readonly VerificationKey[] | undefined;
  readonly fetchedAt: number;
}

function createFindDocumentKeys(clock: Clock, network: Network) {
  const kept = createExpiringMap<KeptKeys>('clientDocuments', clock.monotonic);
  const loadOnce = createLoadOnce(
    load,
    'Too many keys of clients are being fetched. Try again in a few seconds.',
  );

  async function load(url: URL): Promise<KeptKeys> {
    const fetchedAt = clock.monotonic();
    try {
      const { body } = await fetchDocument(url, network, clock);
      const keys = parseDocumentKeys(body) ?? failDocument(`${url.href} has no usable key.`);
      kept.set(url.href, { keys, fetchedAt }, clock.monotonic() + FRESH_KEYS_MS);
      return { keys, fetchedAt };
    } catch (refusal) {
      const failed = { keys: undefined, fetchedAt };
      kept.set(url.href, failed, clock.monotonic() + COOL_DOWN_MS);
      throw refusal;
    }
  }

  /** The keys that may have signed what `hint` describes. @throws ClientDocumentRefused */
  return async function findDocumentKeys(source: DocumentKeySource, hint: KeyHint) {
    if (source.kind === 'given') return selectCandidates(source.keys, hint);
    const known = kept.get(source.url.href) ?? (await loadOnce(source.url));
    const found = selectCandidates(known.keys, hint);
    const mayHaveChanged = clock.monotonic() - known.fetchedAt >= COOL_DOWN_MS;
    if (known.keys === undefined) return failDocument(`${source.url.href} could not be used.`);
    if (found.length > 0 || !mayHaveChanged) return found;
    return selectCandidates((await loadOnce(source.url)).keys, hint);
  };
}

// §4.6, OAuth Client ID Metadata Document (draft) §5, §8.6, §8.7: one GET to a host that anybody may have named.

/** Timeout of look-up, connection and answer together. */
const TIMEOUT_MS = 5000;
/** The draft recommends 5 kB; real documents with many members may be larger. */
const MAX_BYTES = 32_768;

const JSON_TYPE = /^application\/([\w!#$&^.-]+\+)?json[ \t]*(;|$)/i;

/** Fetches the document of a client ID. Follows no redirect. @throws ClientDocumentRefused */
async function fetchDocument(url: URL, network: Network, clock: Clock) {
  const abort = new AbortController();
  const cancel = clock.after(TIMEOUT_MS, () => {
    const problem = `did not arrive in full within ${TIMEOUT_MS / 1000} s`;
    abort.abort(createUnreachableError(url.hostname, describeProblem(url, problem), 'ETIMEDOUT'));
  });
  try {
    return await Promise.race([
      requestDocument(url, network, abort.signal),
      rejectOnAbort(abort.signal),
    ]);
  } catch (cause) {
    if (cause instanceof ClientDocumentRefused) throw cause;
    if (cause instanceof HostNotPublic)
      throw createUnreachableError(
        url.hostname,
        `The host ${url.hostname} of the client_id does not resolve to public addresses only.`,
        cause.cause,
      );
    // Details of a failed connection are for the log only: they would reveal the internal network.
    throw createUnreachableError(url.hostname, describeProblem(url, 'cannot be fetched'), cause);
  } finally {
    cancel();
    // Closes open connections.
    abort.abort();
  }
}

async function requestDocument(url: URL, network: Network, signal: AbortSignal) {
  const { status, headers, body } = await requestPublicHost(url, {}, network, signal);
  if (status >= 300 && status < 400)
    failProblem(url, `answered with a redirect (${status}), which is not followed`);
  if (status !== 200) failProblem(url, `answered ${status}`);
  if (!JSON_TYPE.test(headers['content-type'] ?? ''))
    failProblem(url, 'is not served as application/json');
  const problem = describeProblem(url, `is longer than ${MAX_BYTES} bytes`);
  return {
    headers,
    body: await readBody(body, MAX_BYTES, () => new ClientDocumentRefused(problem)),
  };
}

const failProblem = (url: URL, problem: string): never =>
  failDocument(describeProblem(url, problem));

const describeProblem = (url: URL, problem: string) =>
  `The client's metadata document ${url.href} ${problem}.`;
