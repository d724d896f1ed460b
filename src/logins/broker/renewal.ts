// §5.11: renews grants: now and then, at a client's refresh or when a call needs the provider's token, one replica asks the
// provider whether the user still has access. If the provider cannot be reached, no user is logged
// out: refreshes continue for OAUTH_RENEWAL_GRACE_SECONDS, then get 503 until it can be reached.

import { fail, GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { GetProviderToken } from '../../http/endpoint/message.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import { type Clock, pause } from '../../platform/clock.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import { readVersioned, type SealedStore, writeVersioned } from '../../store/records.ts';
import { type Grant, isRenewable, nameUser, type ProviderTokens } from '../grants/grant.ts';
import type { Grants, StoredGrant } from '../grants/grants.ts';
import type { LoginEnds } from './ends.ts';
import type { ProviderLogins } from './provider-login.ts';
import type { BrokerRuntime } from './runtime.ts';

/** Outcome of a renewal, as data that replicas share. */
type Renewal = { readonly kind: 'renewed' | 'ended' | 'failed' };

const SESSION_ENDED = 'The provider has ended the session meanwhile.';

/** Backoff after a failure. */
const RETRY_MS = 60_000;
const RETRY_AFTER_SECONDS = 60;
/** Reserve of the provider's access token for the request that uses it. */
const RESERVE_MS = 30_000;
/** For access tokens without a known lifetime. */
const UNKNOWN_LIFETIME_MS = 60_000;

export function createGrantRenewal(
  runtime: BrokerRuntime,
  grants: Grants,
  providerLogins: ProviderLogins,
  { endGrant, logouts, revokeAtProvider }: LoginEnds,
) {
  const { oauth, loginSeal: seal, store, clock, log, metrics } = runtime;
  const config = oauth.tokens;
  const runOnce = createRunOnce<Renewal>({ store, seal }, clock);
  /** Keyed by grant and version. */
  const tokens = createExpiringMap<string>('providerTokens', clock.now);

  async function renew({ id, renewedAt, provider: seen }: Grant): Promise<Renewal> {
    const seenToken = getRenewalToken(seen);
    // Keyed by the refresh token: some providers treat a second use as theft.
    const name = JSON.stringify(['renewal', id, seenToken]);
    return runOnce(name, renewAlone, ({ kind }) => kind !== 'failed');

    async function renewAlone(): Promise<Renewal> {
      const grant = (await grants.read(id))?.grant;
      if (grant === undefined) return { kind: 'ended' };
      // Another request has renewed it in the meantime.
      const isDone = grant.renewedAt > renewedAt || getRenewalToken(grant.provider) !== seenToken;
      return isDone ? { kind: 'renewed' } : askProvider(grant);
    }
  }

  async function askProvider(grant: Grant): Promise<Renewal> {
    const { id } = grant;
    try {
      const logoutMark = await logouts.getMark();
      const renewed = await providerLogins.renew(grant.provider);
      if (renewed === undefined) return end(grant, ENDED_THERE);
      const { answer, tokens: provider, problem } = renewed;
      const { refreshToken } = provider;
      // Stored first: the former refresh token may be worthless now. The user of the new access token is not known yet.
      const kept = await (refreshToken === undefined
        ? grants.read(id)
        : grants.update(id, (current) => ({ ...current, provider: { refreshToken } })));
      if (kept === undefined) {
        await revokeAtProvider({ ...grant, provider });
        return { kind: 'ended' };
      }
      if (problem !== undefined) return noteFailure(grant, problem);
      const identity = await providerLogins.readIdentity(answer, {
        nonce: undefined,
        earlier: kept.grant,
        isHeldToken: refreshToken === undefined,
      });
      if (identity === undefined) return end(grant, ENDED_THERE);
      const refusal = providerLogins.findLoginRefusal(identity);
      if (refusal !== undefined) return end(grant, refusal.forLog);
      await grants.update(id, ({ renewalFailedAt: _, renewalTriedAt: __, ...current }) => ({
        ...current,
        provider,
        claims: identity.claims,
        userinfoClaims: identity.userinfoClaims,
        sid: identity.sid ?? current.sid,
        renewedAt: clock.now(),
      }));
      // A session that ends at the provider while the grant moves into it is not in any list that was read.
      if (identity.sid !== undefined && identity.sid !== grant.sid) {
        const login = { ...identity, clientId: grant.client.id, logoutMark };
        if (await logouts.isOver(login)) return end(grant, SESSION_ENDED);
      }
      metrics.recordGrantRenewal('renewed');
      return { kind: 'renewed' };
    } catch (thrown) {
      return noteFailure(grant, thrown);
    }
  }

  async function end(grant: Grant, reason: string): Promise<Renewal> {
    metrics.recordGrantRenewal('ended');
    await endGrant(grant.id, 'renewal');
    log.info('A login ended when it was renewed.', { ...describe(grant), reason });
    return { kind: 'ended' };
  }

  async function noteFailure(grant: Grant, thrown: unknown): Promise<Renewal> {
    metrics.recordGrantRenewal('failed');
    const { message } = toGatewayError(thrown);
    log.warn(
      'The gateway could not check with the provider whether a user still has access. Refreshes continue for OAUTH_RENEWAL_GRACE_SECONDS.',
      { ...describe(grant), reason: message, cause: thrown },
    );
    const now = clock.now();
    await grants.update(grant.id, (current) => ({
      ...current,
      renewalFailedAt: current.renewalFailedAt ?? now,
      renewalTriedAt: now,
    }));
    return { kind: 'failed' };
  }

  return {
    /**
     * Renews if it is due. Resolves to the current grant; undefined if it has ended.
     *
     * @throws GatewayError `renewal_unavailable` if the provider could not be asked for too long.
     */
    async renewIfDue(stored: StoredGrant): Promise<StoredGrant | undefined> {
      const { grant } = stored;
      const now = clock.now();
      const isDue =
        isRenewable(grant.provider) && now - grant.renewedAt >= config.renewalSeconds * 1000;
      if (!isDue) return stored;
      if (!wasJustTried(grant, now) && (await renew(grant)).kind === 'ended') return undefined;
      const current = await grants.read(grant.id);
      const failedAt = current?.grant.renewalFailedAt;
      if (failedAt !== undefined && clock.now() - failedAt >= config.renewalGraceSeconds * 1000)
        fail('renewal_unavailable', { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } });
      return current;
    },
    /** @throws the store's errors. */
    async getProviderToken({ grant: check, token }: Parameters<GetProviderToken>[0]) {
      if (check === undefined) return token;
      const known = tokens.get(`${check.id}.${check.version}`);
      if (known !== undefined) return known;
      let stored = await grants.read(check.id);
      const now = clock.now();
      const canRefresh = stored?.grant.provider.refreshToken !== undefined;
      if (stored && canRefresh && !isUsable(stored.grant, now + RESERVE_MS)) {
        const { provider, renewedAt } = stored.grant;
        // Some providers' tokens live no longer than the reserve.
        const wasJustRenewed = provider.accessToken !== undefined && now - renewedAt < RESERVE_MS;
        if (!wasJustRenewed && !wasJustTried(stored.grant, now)) await renew(stored.grant);
        stored = await grants.read(check.id);
      }
      if (stored === undefined || !isUsable(stored.grant, clock.now())) return undefined;
      const { accessToken, expiresAt = now + UNKNOWN_LIFETIME_MS } = stored.grant.provider;
      if (accessToken !== undefined)
        tokens.set(`${check.id}.${stored.version}`, accessToken, expiresAt - RESERVE_MS);
      return accessToken;
    },
  };
}

const ENDED_THERE = 'The provider says that it has ended.';

/** The token that is sent to the provider. */
const getRenewalToken = ({ refreshToken, accessToken }: ProviderTokens) =>
  refreshToken ?? accessToken;

/** True if the provider's access token is valid at that time, in epoch milliseconds. */
const isUsable = ({ provider: { accessToken, expiresAt } }: Grant, at: number) =>
  accessToken !== undefined && (expiresAt === undefined || expiresAt > at);

const wasJustTried = ({ renewalTriedAt }: Grant, now: number) =>
  renewalTriedAt !== undefined && now - renewalTriedAt < RETRY_MS;

const describe = ({ id, user, client }: Grant) => ({
  ...nameUser(user),
  client: client.id,
  grant: id,
});

// Single flight across all replicas: one of many simultaneous callers does the work. The others get its outcome, and so do those
// who ask again within a few seconds.

/** Clients that lost a response, or raced themselves, retry within this time. */
const RESULT_SECONDS = 10;
/** After a failure of unknown outcome: waiting callers must not send the same request at once. */
const FAILURE_SECONDS = 2;
const POLL_MS = 50;

/** Exceeds the duration of the work: a replica that holds the lock longer has died. */
const LOCK_SECONDS = 30;

const NO_ANSWER = 'The identity provider could not be reached. Try again in a moment.';

/** Plain data, sealed in the store, where it takes the place of the lock of the replica that does the work. */
type Outcome<Result> =
  | { readonly result: Result }
  | { readonly failed: true; readonly details?: string };

export function createRunOnce<Result>({ store, seal }: SealedStore, clock: Clock) {
  /** Single flight within this process: one of the waiting callers polls the store. */
  const running = createSingleFlight<string, Result>();

  /**
   * `name` is a secret of the caller. `isFinal` is true for a result that is worth keeping: after a temporary failure, the next
   * caller tries again.
   */
  return function runOnce(
    name: string,
    work: () => Promise<Result>,
    isFinal: (result: Result) => boolean,
  ): Promise<Result> {
    const key = buildOAuthKey('flight', hashSha256(name));
    const lock = generateSecret();
    const write = (outcome: Outcome<Result>) => seal.seal(key, writeVersioned(outcome));

    /** A failing store must not lose the result for its caller; the lock then keeps others from repeating the work. */
    async function runLocked() {
      try {
        const result = await work();
        // Removes only its own lock: after a long time, another replica may have begun.
        await (isFinal(result)
          ? store.set(key, write({ result }), RESULT_SECONDS)
          : store.compareAndDelete(key, lock)
        ).catch(() => {});
        return result;
      } catch (error) {
        const details = error instanceof GatewayError ? { details: error.message } : {};
        const failure = write({ failed: true, ...details });
        // Keeps another replica's lock: a failure must not end its work.
        await store.compareAndSet(key, lock, failure, FAILURE_SECONDS).catch(() => {});
        throw error;
      }
    }

    return running.run(key, async () => {
      const deadline = clock.monotonic() + LOCK_SECONDS * 1000;
      while (clock.monotonic() < deadline) {
        const stored = await store.getOrSet(key, lock, LOCK_SECONDS);
        if (stored === lock) return runLocked();
        // A lock is not sealed, so no secret opens it.
        const text = seal.open(key, stored);
        if (text !== undefined) {
          const found = readVersioned<Outcome<Result>>(text, 'The outcome of a refresh');
          if ('result' in found) return found.result;
          fail('upstream_failed', { details: found.details ?? NO_ANSWER });
        }
        await pause(clock, POLL_MS);
      }
      return fail('upstream_failed', {
        details: 'Another refresh of this token has not finished. Try again in a moment.',
      });
    });
  };
}
