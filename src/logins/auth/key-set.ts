// §5.2: fetches and refreshes the provider's key set, rarely, and keeps it as long as needed.

import { fail } from '../../errors/gateway-error.ts';
import {
  IssuerMismatch,
  type ProviderMetadata,
} from '../../http/oauth-client/provider-metadata.ts';
import { type Clock, computePauseMs, pause } from '../../platform/clock.ts';
import { fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { describeCause } from '../../platform/log.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { parseKeySet, type VerificationKey } from './jwk.ts';

/** The key that a token names. */
export interface KeyHint {
  readonly alg: string;
  /** If undefined, every key that fits `alg` is a candidate. */
  readonly kid: string | undefined;
}

export type KeySet = ReturnType<typeof createKeySet>;

interface KeySetSource {
  /** `OIDC_JWKS_URL`; if undefined, the provider's metadata has the URL. */
  readonly url?: string | undefined;
  /** Undefined if `url` is always set. */
  readonly metadata?: ProviderMetadata | undefined;
  /** The owner, for the log; defaults to the provider. */
  readonly owner?: {
    readonly name: string;
    /** The effect until it was fetched for the first time. */
    readonly effect: string;
    readonly advice: string;
  };
  /** Maximum number of candidates for one token; all by default. */
  readonly maxCandidates?: number;
}

const PROVIDER = {
  name: "The provider's key set",
  // In broker mode the gateway checks its own tokens without these keys.
  effect: "until it is, none of the provider's tokens can be checked, and nobody can log in",
  advice: 'Check OIDC_ISSUER, OIDC_JWKS_URL and the provider.',
};

/** Requests that may wait for a refresh; further ones are answered at once. */
const MAX_WAITING = 10_000;
const LIMITS = { timeoutMs: 5000, maxBytes: 1_048_576 };

/** The parts of the runtime that a key set needs. */
type FetchRuntime = Pick<Runtime, 'fetch' | 'clock' | 'log' | 'metrics'>;

/** Opens a key set; an empty one that is never fetched if the provider signs nothing. */
export const openKeySet = (runtime: FetchRuntime, source: KeySetSource): KeySet =>
  source.metadata?.isFixed ? NO_KEYS : createKeySet(runtime, source);

export const NO_KEYS: KeySet = {
  start() {},
  async waitForKeys() {},
  find: () => [],
  findAfterRefresh: async () => [],
  isFetched: true,
  describe: () => ({
    url: undefined,
    keys: [],
    fetchedAt: undefined,
    nextFetchAt: undefined,
    problem: undefined,
  }),
  close() {},
};

export function createKeySet(
  { fetch, clock, log, metrics }: FetchRuntime,
  { url, metadata, owner = PROVIDER, maxCandidates }: KeySetSource,
) {
  let keys: readonly VerificationKey[] | undefined;
  let fetchedFrom: string | undefined;
  let fetchedAt: number | undefined;
  let problem: string | undefined;
  let waiting = 0;
  const refresher = createKeySetRefresher(clock, load, reportOutcome);

  /** Counts every fetch, and logs once that fetches fail, and once that they succeed again. */
  function reportOutcome(failure: RefreshFailure | undefined) {
    const wasFailing = problem !== undefined;
    problem = failure && describeCause(failure.cause);
    metrics.recordKeySetRefresh(failure ? 'error' : 'success');
    if (failure === undefined) {
      if (wasFailing) log.info(`${owner.name} can be fetched again.`);
    } else if (!wasFailing && !(failure.cause instanceof IssuerMismatch)) {
      const meanwhile = keys ? 'the last one stays in use' : owner.effect;
      log.error(`${owner.name} cannot be fetched; ${meanwhile}. ${owner.advice}`, failure);
    }
  }

  async function load() {
    const jwksUrl = url ?? (await metadata?.get())?.jwks_uri;
    if (jwksUrl === undefined) throw new Error('there is no URL of the key set');
    fetchedFrom = stripUri(jwksUrl);
    const { status, body } = await fetchWithLimits(fetch, jwksUrl, ACCEPT_JSON, LIMITS);
    if (status !== 200) throw new Error(`${fetchedFrom} answered ${status}`);
    const { usable, listed } = parseKeySet(body);
    log.debug('The key set was fetched.', { usable: usable.length, listed });
    keys = usable;
    keySet.isFetched = true;
    fetchedAt = clock.now();
  }

  async function refreshAndFind(hint: KeyHint) {
    if (refresher.running) {
      const failure = await refresher.running;
      // A provider that stalls would also stall the next fetch: no caller waits for both.
      if (failure) failUnavailable(failure.cause);
      // It may have begun before the key was published: only the named key settles it.
      const named = selectCandidates(keys, hint, maxCandidates).filter(
        ({ kid }) => kid !== undefined,
      );
      if (hint.kid !== undefined && named.length > 0) return named;
    }
    const failure = await refresher.refreshLater();
    return failure ? failUnavailable(failure.cause) : selectCandidates(keys, hint, maxCandidates);
  }

  async function limitWaiting<Found>(wait: () => Promise<Found>) {
    if (waiting >= MAX_WAITING) failUnavailable(new Error('too many requests wait for a refresh'));
    waiting += 1;
    try {
      return await wait();
    } finally {
      waiting -= 1;
    }
  }

  const keySet = {
    /** True once a key set was fetched. */
    isFetched: false,
    /** Starts fetching, and refreshing in the background. */
    start() {
      refresher.refresh();
    },
    /** Finds candidates among the cached keys; never waits. */
    find(hint: KeyHint): readonly VerificationKey[] {
      const found = selectCandidates(keys, hint, maxCandidates);
      metrics.recordKeySetLookup(found.length > 0);
      return found;
    },
    /**
     * Resolves once there is a key set.
     *
     * @throws GatewayError `key_set_unavailable` if the provider is unavailable.
     */
    waitForKeys: (): Promise<void> =>
      limitWaiting(async () => {
        // They may have arrived while the caller was being counted.
        if (keys !== undefined) return;
        const failure = await (refresher.running ?? refresher.refreshLater());
        if (failure && keys === undefined) failUnavailable(failure.cause);
      }),
    /**
     * Finds candidates after a refresh; one that is already running counts only if it brought the key. Single flight: concurrent
     * callers share one refresh.
     *
     * @throws GatewayError `key_set_unavailable` if the provider is unavailable: the key may or may not be known there.
     */
    findAfterRefresh: (hint: KeyHint): Promise<readonly VerificationKey[]> =>
      limitWaiting(() => refreshAndFind(hint)),
    /** For operators. Times are epoch milliseconds. */
    describe: () => ({
      /** The URL of the last fetch; undefined until it is known. */
      url: fetchedFrom,
      keys: (keys ?? []).map(({ kid, algorithms }) => ({ kid, algorithms: [...algorithms] })),
      fetchedAt,
      /** The time of the next fetch; undefined during a fetch. */
      nextFetchAt: refresher.nextAt,
      /** The error of the last fetch; undefined if it succeeded. */
      problem,
    }),
    close: refresher.close,
  };
  return keySet;
}

const ACCEPT_JSON = { headers: { Accept: 'application/jwk-set+json, application/json' } };

const failUnavailable = (cause: unknown): never => fail('key_set_unavailable', { cause });

/**
 * Selects the keys with the same ID, or if there are none, those without an ID; for a token without a kid, all keys. `most` is
 * their limit.
 */
export function selectCandidates(
  keys: readonly VerificationKey[] = [],
  { alg, kid }: KeyHint,
  most = Number.POSITIVE_INFINITY,
): readonly VerificationKey[] {
  const named: VerificationKey[] = [];
  const unnamed: VerificationKey[] = [];
  for (const key of keys) {
    if (!key.algorithms.has(alg)) continue;
    if (kid === undefined || key.kid === kid) named.push(key);
    else if (key.kid === undefined) unnamed.push(key);
  }
  const candidates = named.length > 0 ? named : unnamed;
  return candidates.length > most ? candidates.slice(0, most) : candidates;
}

// Fetches, one at a time and few, however many callers want one.

type RefreshFailure = Readonly<Record<'cause', unknown>>;

const REFRESH_EVERY_MS = 600_000;
/** At most one fetch in this time, however many unknown key IDs arrive. */
const COOL_DOWN_MS = 2000;
/** A service without keys is not ready: it must soon notice that the provider is back. */
const BACK_OFF = { firstMs: 2 * COOL_DOWN_MS, longestMs: 10_000 };

/** A fetch resolves to undefined if it succeeds; an error of `load` is the cause of its failure. */
function createKeySetRefresher(
  clock: Clock,
  load: () => Promise<void>,
  onOutcome: (failure: RefreshFailure | undefined) => void,
) {
  let lastStart = Number.NEGATIVE_INFINITY;
  let lastFailure: RefreshFailure | undefined;
  let failures = 0;
  let running: Promise<RefreshFailure | undefined> | undefined;
  let next: Promise<RefreshFailure | undefined> | undefined;
  let nextAt: number | undefined;
  let cancelRefresh = () => {};
  let isClosed = false;

  function refresh() {
    running ??= fetchAndPlan();
    return running;
  }

  async function fetchAndPlan() {
    lastStart = clock.monotonic();
    lastFailure = await load().then(
      () => undefined,
      (cause: unknown) => ({ cause }),
    );
    running = undefined;
    // A fetch that ends because of a shutdown is not a failure.
    if (!isClosed) onOutcome(lastFailure);
    failures = lastFailure ? failures + 1 : 0;
    cancelRefresh();
    const waitMs = lastFailure ? computePauseMs(BACK_OFF, failures) : REFRESH_EVERY_MS;
    nextAt = clock.now() + waitMs;
    if (!isClosed) cancelRefresh = clock.after(waitMs, refresh);
    return lastFailure;
  }

  return {
    /** Fetches now, unless a fetch is running; its outcome determines the time of the next one. */
    refresh,
    /** Fetches after this call, and so sees keys that the provider has published by now. */
    async refreshLater() {
      const sinceLast = clock.monotonic() - lastStart;
      if (lastFailure && sinceLast < COOL_DOWN_MS) return lastFailure;
      next ??= pause(clock, Math.max(0, COOL_DOWN_MS - sinceLast)).then(() => {
        next = undefined;
        return refresh();
      });
      return next;
    },
    /** The running fetch. */
    get running() {
      return running;
    },
    /** The time of the next scheduled fetch in epoch milliseconds; undefined during a fetch. */
    get nextAt() {
      return running === undefined ? nextAt : undefined;
    },
    close() {
      isClosed = true;
      cancelRefresh();
    },
  };
}
