// The part of broker mode that is there before the endpoints of OAuth: the login at the provider, its renewal and its end.

import type { ServerUrls } from '../../config/server-urls.ts';
import { fail, GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { GetProviderToken } from '../../http/endpoint/message.ts';
import { createProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import type { Connections } from '../../mcp/upstream/connections.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import { type Clock, pause } from '../../platform/clock.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import { readVersioned, type SealedStore, writeVersioned } from '../../store/records.ts';
import { warnOfForeignSecrets } from '../../store/seal/secrets.ts';
import type { ProviderAccess } from '../auth/auth.ts';
import { createIdTokenVerifier } from '../auth/id-token.ts';
import { createLogoutTokenVerifier } from '../auth/logout-token.ts';
import type { MachineClients } from '../auth/machine-clients.ts';
import { createClientKeySets } from '../client-authentication/authenticate-client.ts';
import { type Grant, isRenewable, nameUser, type ProviderTokens } from '../grants/grant.ts';
import type { Grants, OwnTokens, StoredGrant } from '../grants/grants.ts';
import { createAssertionIssuers } from '../id-jag/assertion.ts';
import { createFindLoginRefusal, type FindLoginRefusal } from '../identity/login-policy.ts';
import { createLoginEnds, type LoginEnds } from './ends.ts';
import { createLoginRecords } from './login.ts';
import { createProviderLogins, type ProviderLogins } from './provider-login.ts';
import type { BrokerRuntime } from './runtime.ts';

export type Broker = ReturnType<typeof openBroker>;

/** The servers behind the gateway, as logins know them. */
export interface ServersOfBroker {
  readonly urls: ServerUrls;
  /** Claims that rules name, as they stand now. */
  readonly listNamedClaims: () => readonly string[];
  /** True where there is a server for which users need a connection. */
  readonly hasConnections: () => boolean;
  readonly connections: Connections | undefined;
}

/** @throws Error in proxy mode, and without a secret or a provider. */
export function openBroker(
  gatewayRuntime: Runtime,
  ownTokens: OwnTokens,
  { metadata, keySet }: ProviderAccess,
  machineClients: MachineClients,
  servers: ServersOfBroker,
) {
  const { config, clock, loginSeal } = gatewayRuntime;
  const { baseUrl, displayName } = config.server;
  const { oauth } = config;
  if (oauth.mode !== 'broker') throw new Error('Clients get tokens of the provider');
  if (loginSeal === undefined || metadata === undefined || keySet === undefined)
    throw new Error("The gateway's own tokens need a secret, and a provider");
  const runtime: BrokerRuntime = {
    ...gatewayRuntime,
    baseUrl,
    serverUrls: servers.urls,
    oauth,
    loginSeal,
    seal: warnOfForeignSecrets(loginSeal, gatewayRuntime),
  };
  const { provider, idJag } = oauth;
  const expected = {
    issuer: provider.issuer,
    clientId: oauth.providerClient.id,
    baseUrl,
    clockToleranceSeconds: oauth.tokens.clockToleranceSeconds,
  };
  const endpoints = createProviderEndpoints(oauth.endpoints, metadata);
  const providerLogins = createProviderLogins(
    runtime,
    endpoints,
    metadata,
    createIdTokenVerifier(clock, keySet, expected),
    servers.listNamedClaims,
  );
  const { grants } = ownTokens;
  const ends = createLoginEnds(
    runtime,
    grants,
    providerLogins.revoke,
    machineClients,
    servers.connections,
  );
  const findLoginRefusal = createFindLoginRefusal(oauth.identity, displayName);
  const clientKeySets = createClientKeySets(runtime, machineClients);
  const assertionIssuers = idJag.isEnabled
    ? createAssertionIssuers(runtime, idJag.issuers, { issuer: provider.issuer, keySet })
    : undefined;
  return {
    runtime,
    ownTokens,
    endpoints,
    logins: createLoginRecords(runtime),
    providerLogins,
    findLoginRefusal,
    logoutTokens: createLogoutTokenVerifier(clock, keySet, expected),
    renewal: createGrantRenewal(runtime, grants, providerLogins, findLoginRefusal, ends),
    ends,
    machineClients,
    clientKeySets,
    assertionIssuers,
    servers,
    close() {
      clientKeySets.close();
      assertionIssuers?.close();
    },
  };
}

// §5.11: at a client's refresh the provider is asked whether the user still may: once in a while, and once at a time on all
// replicas. What it says is taken over; that it cannot be asked logs nobody out.

/** The outcome of a renewal, as data that replicas tell each other. */
type Renewal = { readonly kind: 'renewed' | 'ended' | 'failed' };

const SESSION_ENDED = 'The provider has ended the session meanwhile.';

/** After a failure the provider is left alone for so long. */
const RETRY_MS = 60_000;
const RETRY_AFTER_SECONDS = 60;
/** Left of the provider's access token for what a server still has to do with it. */
const RESERVE_MS = 30_000;
/** For one that does not say how long it lives, and for none. */
const UNKNOWN_LIFETIME_MS = 60_000;

function createGrantRenewal(
  runtime: BrokerRuntime,
  grants: Grants,
  providerLogins: ProviderLogins,
  findLoginRefusal: FindLoginRefusal,
  { endGrant, logouts, tellProvider }: LoginEnds,
) {
  const { oauth, loginSeal: seal, store, clock, log, metrics } = runtime;
  const config = oauth.tokens;
  const runOnce = createRunOnce<Renewal>(createFlightRecords({ store, seal }), clock);
  /** The keys are grant and version. */
  const tokens = createExpiringMap<string>('providerTokens', clock.now);

  async function renew({ id, renewedAt, provider: seen }: Grant): Promise<Renewal> {
    const seenToken = getRenewalToken(seen);
    // The refresh token is the name, which some providers take for stolen when it is used twice.
    const name = JSON.stringify(['renewal', id, seenToken]);
    return runOnce(name, renewAlone, ({ kind }) => kind !== 'failed');

    async function renewAlone(): Promise<Renewal> {
      const grant = (await grants.read(id))?.grant;
      if (grant === undefined) return { kind: 'ended' };
      // Somebody has done it since this one looked.
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
      // Kept before anything is done with it: the refresh token before may be worthless now. Whose the access token is, is not known
      // yet.
      const kept = await (refreshToken === undefined
        ? grants.read(id)
        : grants.update(id, (current) => ({ ...current, provider: { refreshToken } })));
      if (kept === undefined) {
        await tellProvider({ ...grant, provider });
        return { kind: 'ended' };
      }
      if (problem !== undefined) return noteFailure(grant, problem);
      const identity = await providerLogins.readIdentity(answer, {
        nonce: undefined,
        earlier: kept.grant,
        isHeldToken: refreshToken === undefined,
      });
      if (identity === undefined) return end(grant, ENDED_THERE);
      const refusal = findLoginRefusal(identity);
      if (refusal !== undefined) return end(grant, refusal.forLog);
      await grants.update(id, ({ renewalFailedAt: _, renewalTriedAt: __, ...current }) => ({
        ...current,
        provider,
        claims: identity.claims,
        userinfoClaims: identity.userinfoClaims,
        sid: identity.sid ?? current.sid,
        renewedAt: clock.now(),
      }));
      // A session that the provider ends while the grant becomes one of it is in no list that was read.
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
      'The provider could not be asked whether a user still may. Refreshes go on for OAUTH_RENEWAL_GRACE_SECONDS.',
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
     * Renews where it is time. Resolves to the grant as it stands then; undefined where it has ended.
     *
     * @throws GatewayError `renewal_unavailable` where the provider could not be asked for too long.
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
    /** @throws what the store throws. */
    async getProviderToken({ grant: check, token }: Parameters<GetProviderToken>[0]) {
      if (check === undefined) return token;
      const known = tokens.get(`${check.id}.${check.version}`);
      if (known !== undefined) return known;
      let stored = await grants.read(check.id);
      const now = clock.now();
      const canRefresh = stored?.grant.provider.refreshToken !== undefined;
      if (stored && canRefresh && !isUsable(stored.grant, now + RESERVE_MS)) {
        const { provider, renewedAt } = stored.grant;
        // Some providers' tokens live no longer than what is kept in reserve.
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

/** The provider is asked by it. */
const getRenewalToken = ({ refreshToken, accessToken }: ProviderTokens) =>
  refreshToken ?? accessToken;

/** True where the provider's access token is good at that time, in epoch milliseconds. */
const isUsable = ({ provider: { accessToken, expiresAt } }: Grant, at: number) =>
  accessToken !== undefined && (expiresAt === undefined || expiresAt > at);

const wasJustTried = ({ renewalTriedAt }: Grant, now: number) =>
  renewalTriedAt !== undefined && now - renewalTriedAt < RETRY_MS;

const describe = ({ id, user, client }: Grant) => ({
  ...nameUser(user),
  client: client.id,
  grant: id,
});

// One of many that ask the same at the same moment does the work, on whatever replica. The others get
// its outcome, and so do those who ask again within a few seconds.

/** Clients that lost an answer, or raced themselves, come again within this time. */
const RESULT_SECONDS = 10;
/** After a failure of unknown outcome: those who waited must not send the same again at once. */
const FAILURE_SECONDS = 2;
const POLL_MS = 50;

const NO_ANSWER = 'The identity provider could not be reached. Try again in a moment.';

export function createRunOnce<Result>(records: FlightRecords<Result>, clock: Clock) {
  /** For this process: one of many that wait for the same asks the store how far it is. */
  const running = createSingleFlight<string, Result>();

  /**
   * `name` is a secret of the asker. `isFinal` is true for a result that is worth keeping: the next one may do better than a passing
   * failure.
   */
  return function runOnce(
    name: string,
    work: () => Promise<Result>,
    isFinal: (result: Result) => boolean,
  ): Promise<Result> {
    const hash = hashSha256(name);
    return running.run(hash, async () => {
      const lock = generateSecret();
      const deadline = clock.monotonic() + LOCK_SECONDS * 1000;
      while (clock.monotonic() < deadline) {
        const found = await records.lockOrRead(hash, lock);
        if (found === 'locked') return runAndStore(hash, lock, work, isFinal);
        if (found && 'result' in found) return found.result;
        if (found) return fail('upstream_failed', { details: found.details ?? NO_ANSWER });
        await pause(clock, POLL_MS);
      }
      return fail('upstream_failed', {
        details: 'Another refresh of this token has not finished. Try again in a moment.',
      });
    });
  };

  async function runAndStore(
    hash: string,
    lock: string,
    work: () => Promise<Result>,
    isFinal: (result: Result) => boolean,
  ) {
    try {
      const result = await work();
      await (isFinal(result)
        ? records.keepOutcome(hash, { result }, RESULT_SECONDS)
        : records.release(hash, lock));
      return result;
    } catch (error) {
      const details = error instanceof GatewayError ? { details: error.message } : {};
      await records.keepFailure(hash, lock, { failed: true, ...details }, FAILURE_SECONDS);
      throw error;
    }
  }
}

// Records by which replicas tell each other of work that is done once: who does it, and its outcome. Results are
// plain data, sealed while they lie in the store.

/** Longer than the work may take: a replica that holds the lock for longer has died. */
const LOCK_SECONDS = 30;

type FlightOutcome<Result> =
  | { readonly result: Result }
  | { readonly failed: true; readonly details?: string };

type FlightRecords<Result> = ReturnType<typeof createFlightRecords<Result>>;

/** Found by the hash of what is worked on. `lock` is a secret of the one that asks for it. */
export const createFlightRecords = <Result>({ store, seal }: SealedStore) => ({
  /** `locked`: the work is the asker's. Undefined: another one does it. Else it has been done. */
  async lockOrRead(
    hash: string,
    lock: string,
  ): Promise<'locked' | FlightOutcome<Result> | undefined> {
    const key = buildFlightKey(hash);
    const stored = await store.getOrSet(key, lock, LOCK_SECONDS);
    if (stored === lock) return 'locked';
    const text = seal.open(key, stored);
    // No secret opens the lock of another.
    return text === undefined ? undefined : readVersioned(text, 'The outcome of a refresh');
  },
  /**
   * In place of the lock, in one step. Whatever becomes of the store now, what was gained must reach
   * its asker; the lock then keeps others from sending the same once more.
   */
  async keepOutcome(hash: string, outcome: FlightOutcome<Result>, seconds: number) {
    const key = buildFlightKey(hash);
    await store.set(key, seal.seal(key, writeVersioned(outcome)), seconds).catch(() => {});
  },
  /** Like `keepOutcome`, but another replica's lock stays: a failure must not end its work. */
  async keepFailure(hash: string, lock: string, outcome: FlightOutcome<Result>, seconds: number) {
    const key = buildFlightKey(hash);
    const sealed = seal.seal(key, writeVersioned(outcome));
    await store.compareAndSet(key, lock, sealed, seconds).catch(() => {});
  },
  /** Only one's own lock: the work may have taken so long that another replica has begun. */
  async release(hash: string, lock: string) {
    await store.compareAndDelete(buildFlightKey(hash), lock).catch(() => {});
  },
});

/** The lock of the replica that does the work, and after it the outcome. */
const buildFlightKey = (hash: string) => buildOAuthKey('flight', hash);
