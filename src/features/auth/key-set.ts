// Spec §5.2, decisions 5: the provider's key set, fetched rarely and kept for as long as needed.
import type { Clock } from '../../core/clock.ts';
import { fail } from '../../core/errors/gateway-error.ts';
import { type Fetch, fetchWithLimits, stripQuery } from '../../core/fetch-with-limits.ts';
import type { Log } from '../../core/log.ts';
import type { Metrics } from '../../core/metrics/metrics.ts';
import { IssuerMismatch } from '../../core/provider/issuer-mismatch.ts';
import type { ProviderMetadata } from '../../core/provider/provider-metadata.ts';
import { readKeySet, type VerificationKey } from './jwk.ts';

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
  ready(): Promise<void>;
  /** Candidates among the keys at hand; never waits. */
  find(hint: KeyHint): readonly VerificationKey[];
  /**
   * Candidates after a refresh that began after the call, shared by all callers of the moment.
   *
   * @throws GatewayError `key_set_unavailable` when the provider cannot be asked: whether the
   * key is known there nobody can say.
   */
  findFresh(hint: KeyHint): Promise<readonly VerificationKey[]>;
  /** Whether there ever was a key set. */
  readonly fetched: boolean;
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
/** A service without keys is not ready: it must notice soon that the provider is back. */
const RETRY_MAX_MS = 10_000;
/** Requests that may wait for a refresh; a flood beyond is answered at once. */
const MAX_WAITING = 10_000;
const LIMITS = { timeoutMs: 5000, maxBytes: 1_048_576 };

type Outcome = { readonly ok: true } | { readonly ok: false; readonly cause: unknown };

export function createKeySet({ url, metadata, fetch, clock, log, metrics }: KeySetDeps): KeySet {
  let keys: readonly VerificationKey[] | undefined;
  let lastStart = Number.NEGATIVE_INFINITY;
  let last: Outcome | undefined;
  let failures = 0;
  let running: Promise<Outcome> | undefined;
  let next: Promise<Outcome> | undefined;
  let waiting = 0;
  let cancelRefresh = () => {};
  let closed = false;

  async function load(): Promise<Outcome> {
    lastStart = clock.monotonic();
    try {
      const from = url ?? (await metadata.get()).jwks_uri;
      const { status, body } = await fetchWithLimits(fetch, from, ACCEPT_JSON, LIMITS);
      if (status !== 200) throw new Error(`${stripQuery(from)} answered ${status}`);
      const { usable, listed } = readKeySet(body.toString('utf8'));
      log.debug('The key set was fetched.', { usable: usable.length, listed });
      keys = usable;
      return { ok: true };
    } catch (cause) {
      return { ok: false, cause };
    }
  }

  /** One fetch at a time; its outcome decides when the next one is due. */
  function refresh(): Promise<Outcome> {
    running ??= load().then((outcome) => {
      running = undefined;
      last = outcome;
      note(outcome);
      failures = outcome.ok ? 0 : failures + 1;
      const retryMs = Math.min(COOL_DOWN_MS * 2 ** failures, RETRY_MAX_MS);
      cancelRefresh();
      if (!closed) cancelRefresh = clock.after(outcome.ok ? REFRESH_EVERY_MS : retryMs, refresh);
      return outcome;
    });
    return running;
  }

  function note(outcome: Outcome): void {
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

  /** A fetch that has not begun yet: it sees what the provider knows from now on. */
  function nextRefresh(): Promise<Outcome> {
    const sinceLast = clock.monotonic() - lastStart;
    if (last?.ok === false && sinceLast < COOL_DOWN_MS) return Promise.resolve(last);
    next ??= new Promise<void>((due) => {
      clock.after(Math.max(0, COOL_DOWN_MS - sinceLast), due);
    }).then(() => {
      next = undefined;
      return refresh();
    });
    return next;
  }

  async function findAfterRefresh(hint: KeyHint): Promise<readonly VerificationKey[]> {
    if (running) {
      await running;
      // It may have begun before the key was published: only the very key settles it.
      const named = candidates(keys, hint).filter(({ kid }) => kid !== undefined);
      if (hint.kid !== undefined && named.length > 0) return named;
    }
    const outcome = await nextRefresh();
    return outcome.ok ? candidates(keys, hint) : unavailable(outcome.cause);
  }

  async function firstKeys(): Promise<void> {
    const outcome = await (running ?? nextRefresh());
    if (!outcome.ok && keys === undefined) unavailable(outcome.cause);
  }

  async function amongWaiting<Found>(wait: () => Promise<Found>): Promise<Found> {
    if (waiting >= MAX_WAITING) unavailable(new Error('too many requests wait for a refresh'));
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
      const found = candidates(keys, hint);
      metrics.recordKeySetLookup(found.length > 0);
      return found;
    },
    ready: () => amongWaiting(firstKeys),
    findFresh: (hint) => amongWaiting(() => findAfterRefresh(hint)),
    get fetched() {
      return keys !== undefined;
    },
    close() {
      closed = true;
      cancelRefresh();
    },
  };
}

const ACCEPT_JSON = { headers: { Accept: 'application/jwk-set+json, application/json' } };

const unavailable = (cause: unknown): never => fail('key_set_unavailable', { cause });

/** Keys of the same id; where there are none, those without an id; all, for a token without. */
function candidates(
  keys: readonly VerificationKey[] = [],
  { alg, kid }: KeyHint,
): readonly VerificationKey[] {
  const fitting = keys.filter((key) => key.algorithms.has(alg));
  if (kid === undefined) return fitting;
  const named = fitting.filter((key) => key.kid === kid);
  return named.length > 0 ? named : fitting.filter((key) => key.kid === undefined);
}
