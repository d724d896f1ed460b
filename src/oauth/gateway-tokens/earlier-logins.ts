// §5.11: logins from before clients got tokens of the gateway's own. A refresh token of the provider that the gateway has a
// record of becomes a grant when its client brings it, and counts from then on as one that was replaced.
import { OPERATORS_CLIENT_ID } from '../../auth/own-clients.ts';
import type { TokensConfig } from '../../config/groups/own-tokens.ts';
import { parseScope } from '../../config/scope.ts';
import { fail } from '../../errors/gateway-error.ts';
import { createGrantId, type Grant, issueFirstPair } from '../../grants/grant.ts';
import type { RefreshToken } from '../../grants/token-codec.ts';
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { parseObject } from '../../platform/json.ts';
import type { Log } from '../../platform/log.ts';
import { buildOAuthKey, RECORD_VERSION } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';
import type { KnownRefreshToken, RefreshTokens } from '../broker/refresh-tokens.ts';
import type { RunOnce } from '../broker/run-once.ts';
import type { Client } from '../clients/clients.ts';
import type { FindLoginRefusal } from '../identity/login-policy.ts';
import type { ReadIdentity } from '../identity/read-identity.ts';
import {
  listGrantedScopes,
  type ProviderParametersConfig,
} from '../provider/provider-parameters.ts';
import type { OwnResources } from '../request/parameters.ts';
import type { IssueGrant } from './issue-grant.ts';
import type { ProviderLogins } from './provider-login.ts';
import { getDefaultResources, selectOwnResources } from './resources.ts';
import type { TellProvider } from './tell-provider.ts';

export interface EarlierLogins {
  /** What it counts as, once there is a grant for it. */
  findToken(refreshToken: string): Promise<RefreshToken | undefined>;
  /** Undefined where the gateway has no record of it, and where it was revoked. */
  findRecord(refreshToken: string): Promise<EarlierRecord | undefined>;
  /**
   * Asks the provider, once however many ask, and makes the grant.
   *
   * @throws GatewayError `invalid_grant` where the login is over; others where the provider could not be asked.
   */
  migrate(refreshToken: string, record: EarlierRecord, client: Client): Promise<RefreshToken>;
  /** Here, and at the provider. */
  revoke(refreshToken: string): Promise<void>;
}

export interface EarlierRecord extends Pick<KnownRefreshToken, 'resources'> {
  /** The client's id. */
  readonly owner: string;
  /** Stays the same while one refresh token takes the place of another. */
  readonly loginId: string;
}

/** What came of it, as data that replicas tell each other. */
export type Migration =
  | { readonly kind: 'migrated'; readonly grantId: string }
  | { readonly kind: 'ended'; readonly reason: string };

export interface EarlierLoginsDeps {
  readonly config: ProviderParametersConfig & OwnResources;
  readonly tokens: Pick<TokensConfig, 'accessSeconds'>;
  /** As long as a refresh token can live. */
  readonly ttlSeconds: number;
  readonly store: KeyValue;
  readonly refreshTokens: RefreshTokens;
  readonly issueGrant: IssueGrant;
  readonly tellProviderInTurn: TellProvider;
  readonly providerLogins: Pick<ProviderLogins, 'renew' | 'revoke'>;
  readonly readIdentity: ReadIdentity;
  readonly findLoginRefusal: FindLoginRefusal;
  readonly runOnce: RunOnce<Migration>;
  readonly clock: Clock;
  readonly log: Log;
}

export function createEarlierLogins(deps: EarlierLoginsDeps): EarlierLogins {
  const { config, store, refreshTokens, issueGrant, providerLogins, clock, log } = deps;

  async function findToken(refreshToken: string): Promise<RefreshToken | undefined> {
    const text = await store.get(buildMigratedKey(refreshToken));
    const { grantId } = (text && parseObject(text)) || {};
    return typeof grantId === 'string' ? toReplaced(grantId) : undefined;
  }

  async function migrateAlone(
    refreshToken: string,
    { resources }: EarlierRecord,
    client: Client,
  ): Promise<Migration> {
    // Somebody has done it, or ended it, since this one looked.
    const [done, isRevoked, successor] = await Promise.all([
      findToken(refreshToken),
      refreshTokens.isRevoked(refreshToken),
      refreshTokens.findSuccessor(refreshToken),
    ]);
    if (done !== undefined) return { kind: 'migrated', grantId: done.grantId };
    if (isRevoked) return { kind: 'ended', reason: 'It was revoked.' };
    const held = successor ?? refreshToken;
    const renewed = await providerLogins.renew({ refreshToken: held });
    if (renewed === undefined) return { kind: 'ended', reason: 'The provider says so.' };
    const { answer, tokens: provider, problem } = renewed;
    const { refreshToken: latest } = provider;
    // Kept before anything can fail: the one that the client has may be worthless now.
    if (latest !== undefined && latest !== held) {
      await refreshTokens.keepSuccessor(refreshToken, latest);
    }
    if (problem !== undefined) throw problem;
    const expected = { nonce: undefined, earlier: undefined, mayLackIdToken: true };
    const identity = await deps.readIdentity(answer, expected);
    if (identity === undefined) return { kind: 'ended', reason: 'The provider says so.' };
    const refusal = deps.findLoginRefusal(identity);
    if (refusal !== undefined) {
      void deps.tellProviderInTurn({ user: identity.user, provider });
      await refreshTokens.revoke(refreshToken, true);
      return { kind: 'ended', reason: refusal.forLog };
    }
    const granted = {
      ...identity,
      provider,
      client,
      scopes: readScopes(answer.scope),
      resources: selectResources(resources, client.id),
    };
    // It began before any logout that is known.
    const grant = await issueGrant(buildGrant(granted), undefined);
    if (grant === undefined) {
      await refreshTokens.revoke(refreshToken, true);
      return { kind: 'ended', reason: 'All logins like this one were ended.' };
    }
    const migrated = JSON.stringify({ version: RECORD_VERSION, grantId: grant.id });
    await store.set(buildMigratedKey(refreshToken), migrated, deps.ttlSeconds);
    await refreshTokens.forgetSuccessor(refreshToken).catch(() => {});
    return { kind: 'migrated', grantId: grant.id };
  }

  function buildGrant({ client, scopes, resources, ...login }: GrantedLogin): Grant {
    const now = clock.now();
    return {
      ...login,
      id: createGrantId(),
      client: { id: client.id, name: client.name, redirectHost: findHost(client) },
      scopes,
      resources,
      createdAt: now,
      renewedAt: now,
      issued: issueFirstPair({ scopes, resources }, now, deps.tokens.accessSeconds),
      replaced: { generation: REPLACED_GENERATION, replacedAt: now },
    };
  }

  /** RFC 6749 §5.1: those that it was asked for, unless the answer says others; which ones those were, nobody noted. */
  function readScopes(said: unknown): readonly string[] {
    const scopes = parseScope(typeof said === 'string' ? said : undefined);
    return scopes.length > 0 ? scopes : listGrantedScopes(config, undefined);
  }

  function selectResources(known: readonly string[] = [], clientId: string): readonly string[] {
    if (clientId === OPERATORS_CLIENT_ID) return [`${config.baseUrl}/admin`];
    const own = selectOwnResources(known, config);
    return own.length > 0 ? own : getDefaultResources(config);
  }

  return {
    findToken,
    async findRecord(refreshToken) {
      const { owner, resources, grantId, isRevoked } = await refreshTokens.find(refreshToken);
      if (owner === undefined || isRevoked) return undefined;
      return { owner, resources, loginId: grantId ?? hashSha256(refreshToken) };
    },
    async migrate(refreshToken, record, client) {
      const name = JSON.stringify(['migration', refreshToken]);
      const work = () => migrateAlone(refreshToken, record, client);
      const migration = await deps.runOnce(name, work, () => true);
      if (migration.kind === 'migrated') return toReplaced(migration.grantId);
      log.info("A login from before the gateway's own tokens is over.", {
        client: client.id,
        reason: migration.reason,
      });
      return fail('invalid_grant', { details: 'The login has ended. Log in again.' });
    },
    async revoke(refreshToken) {
      const latest = (await refreshTokens.findSuccessor(refreshToken)) ?? refreshToken;
      await refreshTokens.revoke(refreshToken, true);
      await providerLogins.revoke({ refreshToken: latest });
    },
  };
}

type GrantedLogin = Pick<
  Grant,
  'user' | 'claims' | 'userinfoClaims' | 'sid' | 'provider' | 'scopes' | 'resources'
> & { readonly client: Client };

/** Its first pair takes the place of the provider's token, which counts as the one before. */
const REPLACED_GENERATION = 0;

const toReplaced = (grantId: string): RefreshToken => ({
  grantId,
  generation: REPLACED_GENERATION,
});

const buildMigratedKey = (refreshToken: string): string =>
  buildOAuthKey('refresh-migrated', hashSha256(refreshToken));

/** Where its codes went is not known any more; where they may go is. */
function findHost(client: Client): string {
  if (client.kind === 'document') return client.host;
  const [redirectUri] = client.redirectUris;
  return redirectUri === undefined ? '' : new URL(redirectUri).host;
}
