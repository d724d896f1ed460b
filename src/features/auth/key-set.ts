// §5.2: the provider's key set, fetched rarely and kept for as long as needed.
import type { Clock } from '../../core/clock.ts';
import { fail } from '../../core/errors/gateway-error.ts';
import { type Fetch, fetchWithLimits, stripQuery } from '../../core/fetch-with-limits.ts';
import type { Log } from '../../core/log.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import { IssuerMismatch } from '../../core/provider/issuer-mismatch.ts';
import type { ProviderMetadata } from '../../core/provider/provider-metadata.ts';
import { parseKeySet, type VerificationKey } from './jwk.ts';

/** What a token says of its key. */
export interface KeyHint {
  readonly alg: string;
  /** Without it every key that fits `alg` is a candidate. */
  readonly kid: string | undefined;
}

export interface KeySet {
  /** Begins to fetch, and to refresh in the background. */
  start(): void;
  /**
   * Resolves once there is a key set.
   *
   * @throws GatewayError `key_set_unavailable` when the provider cannot be asked now.
   */
  waitForKeys(): Promise<void>;
  /** Candidates among the keys at hand; never waits. */
  find(hint: KeyHint): readonly VerificationKey[];
  /**
   * Candidates after a refresh that began after the call, shared by all callers of the moment.
   *
   * @throws GatewayError `key_set_unavailable` when the provider cannot be asked: whether the
   * key is known there nobody can say.
   */
  findAfterRefresh(hint: KeyHint): Promise<readonly VerificationKey[]>;
  /** Whether there ever was a key set. */
  readonly isFetched: boolean;
  close(): void;
}

export interface KeySetDeps {
  /** `OIDC_JWKS_URL`; else the provider's metadata names it. */
  readonly url: string | undefined;
  readonly metadata: ProviderMetadata;
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

const REFRESH_EVERY_MS = 600_000;
/** However many unknown key ids arrive: at most one fetch in this time. */
const COOL_DOWN_MS = 2000;
/** A service without keys is not waitForKeys: it must notice soon that the provider is back. */
const RETRY_MAX_MS = 10_000;
/** Requests that may wait for a refresh; a flood beyond is answered at once. */
const MAX_WAITING = 10_000;
const LIMITS = { timeoutMs: 5000, maxBytes: 1_048_576 };

type Outcome = { readonly ok: true } | { readonly ok: false; readonly cause: unknown };

export function createKeySet({ url, metadata, fetch, clock, log, metrics }: KeySetDeps): KeySet {
  let keys: readonly VerificationKey[] | undefined;
  let lastStart = Number.NEGATIVE_INFINITY;
  let lastOutcome: Outcome | undefined;
  let failures = 0;
  let runningRefresh: Promise<Outcome> | undefined;
  let nextRefresh: Promise<Outcome> | undefined;
  let waiting = 0;
  let cancelRefresh = () => {};
  let isClosed = false;

  async function load(): Promise<Outcome> {
    lastStart = clock.monotonic();
    try {
      const jwksUrl = url ?? (await metadata.get()).jwks_uri;
      const { status, body } = await fetchWithLimits(fetch, jwksUrl, ACCEPT_JSON, LIMITS);
      if (status !== 200) throw new Error(`${stripQuery(jwksUrl)} answered ${status}`);
      const { usable, listed } = parseKeySet(body);
      log.debug('The key set was fetched.', { usable: usable.length, listed });
      keys = usable;
      return { ok: true };
    } catch (cause) {
      return { ok: false, cause };
    }
  }

  /** One fetch at a time; its outcome decides when the next one is due. */
  function refresh(): Promise<Outcome> {
    runningRefresh ??= load().then((outcome) => {
      runningRefresh = undefined;
      lastOutcome = outcome;
      reportOutcome(outcome);
      failures = outcome.ok ? 0 : failures + 1;
      const retryMs = Math.min(COOL_DOWN_MS * 2 ** failures, RETRY_MAX_MS);
      cancelRefresh();
      if (!isClosed) cancelRefresh = clock.after(outcome.ok ? REFRESH_EVERY_MS : retryMs, refresh);
      return outcome;
    });
    return runningRefresh;
  }

  function reportOutcome(outcome: Outcome): void {
    metrics.recordKeySetRefresh(outcome.ok ? 'success' : 'error');
    if (outcome.ok) {
      if (failures > 0) log.info("The provider's key set can be fetched again.");
    } else if (failures === 0 && !(outcome.cause instanceof IssuerMismatch)) {
      log.error(
        keys
          ? "The provider's key set cannot be fetched; the last one stays in use. Check OIDC_ISSUER, OIDC_JWKS_URL and the provider."
          : "The provider's key set cannot be fetched; no token can be checked until it is. Check OIDC_ISSUER, OIDC_JWKS_URL and the provider.",
        { cause: outcome.cause },
      );
    }
  }

  /** A fetch that begins after this call: it sees what the provider knows from now on. */
  function refreshLater(): Promise<Outcome> {
    const sinceLast = clock.monotonic() - lastStart;
    if (lastOutcome?.ok === false && sinceLast < COOL_DOWN_MS) return Promise.resolve(lastOutcome);
    nextRefresh ??= new Promise<void>((due) => {
      clock.after(Math.max(0, COOL_DOWN_MS - sinceLast), due);
    }).then(() => {
      nextRefresh = undefined;
      return refresh();
    });
    return nextRefresh;
  }

  async function refreshAndFind(hint: KeyHint): Promise<readonly VerificationKey[]> {
    if (runningRefresh) {
      await runningRefresh;
      // It may have begun before the key was published: only the very key settles it.
      const named = selectCandidates(keys, hint).filter(({ kid }) => kid !== undefined);
      if (hint.kid !== undefined && named.length > 0) return named;
    }
    const outcome = await refreshLater();
    return outcome.ok ? selectCandidates(keys, hint) : failUnavailable(outcome.cause);
  }

  async function fetchFirstKeys(): Promise<void> {
    const outcome = await (runningRefresh ?? refreshLater());
    if (!outcome.ok && keys === undefined) failUnavailable(outcome.cause);
  }

  async function limitWaiting<Found>(wait: () => Promise<Found>): Promise<Found> {
    if (waiting >= MAX_WAITING) failUnavailable(new Error('too many requests wait for a refresh'));
    waiting += 1;
    try {
      return await wait();
    } finally {
      waiting -= 1;
    }
  }

  return {
    start() {
      refresh();
    },
    find(hint) {
      const found = selectCandidates(keys, hint);
      metrics.recordKeySetLookup(found.length > 0);
      return found;
    },
    waitForKeys: () => limitWaiting(fetchFirstKeys),
    findAfterRefresh: (hint) => limitWaiting(() => refreshAndFind(hint)),
    get isFetched() {
      return keys !== undefined;
    },
    close() {
      isClosed = true;
      cancelRefresh();
    },
  };
}

const ACCEPT_JSON = { headers: { Accept: 'application/jwk-set+json, application/json' } };

const failUnavailable = (cause: unknown): never => fail('key_set_unavailable', { cause });

/** Keys of the same id; where there are none, those without an id; all, for a token without. */
function selectCandidates(
  keys: readonly VerificationKey[] = [],
  { alg, kid }: KeyHint,
): readonly VerificationKey[] {
  const supported = keys.filter((key) => key.algorithms.has(alg));
  if (kid === undefined) return supported;
  const named = supported.filter((key) => key.kid === kid);
  return named.length > 0 ? named : supported.filter((key) => key.kid === undefined);
}
