// §5: opens authentication: key set → token verifier → bearer token check.
import { fail } from '../../errors/gateway-error.ts';
import {
  type AuthRequest,
  createChallenge,
  type GetChallenge,
  isOwnToken,
  type OnRefusal,
  type VerifyBearer,
} from '../../http/endpoint/bearer.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import {
  openProviderMetadata,
  type ProviderMetadata,
} from '../../http/oauth-client/provider-metadata.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { OwnTokens } from '../grants/grants.ts';
import { createCheckTokenUser } from '../identity/login-policy.ts';
import { failToken } from './jws.ts';
import { type KeySet, openKeySet } from './key-set.ts';
import {
  describeMachineSubject,
  MACHINE_SUBJECT_PREFIX,
  type MachineClients,
} from './machine-clients.ts';
import { createOwnTokenVerifier } from './own-tokens.ts';
import { createAuthenticate, createTokenVerifier, listForeignClaims } from './token-verifier.ts';

type TokenVerifier = ReturnType<typeof createTokenVerifier>;

export interface Auth {
  /**
   * Authenticates a request. Undefined if no login is required, otherwise always a promise.
   *
   * @throws GatewayError with a reason of §7.1, or `key_set_unavailable`, through the promise.
   */
  readonly authenticate: (
    request: AuthRequest,
    beforeFetch?: () => Promise<void>,
  ) => UserContext | undefined | Promise<UserContext>;
  /**
   * Reads a user again from the grant of the gateway's own token; undefined if there are no such tokens.
   *
   * @throws GatewayError as `authenticate`, through the promise.
   */
  readonly reload: ((user: UserContext) => Promise<UserContext>) | undefined;
  /**
   * Checks form and claims of a token as `authenticate` does, without its signature. For tokens that came from the provider itself;
   * never to admit a caller.
   */
  readonly inspectToken: TokenVerifier['inspect'];
  /**
   * Returns the user of a provider token, checked in full as `authenticate` does, but only with the cached keys;
   * undefined if no login is required.
   *
   * @throws GatewayError as `authenticate`, and `key_set_unavailable` if a key would have to be fetched.
   */
  readonly verifyToken: (token: string) => UserContext | undefined | Promise<UserContext>;
  /** Returns the headers of a 401 at a path; undefined if no login is required. */
  readonly getChallenge: GetChallenge | undefined;
  /** Undefined if no login is required. */
  readonly describeKeySet: KeySet['describe'] | undefined;
  readonly readiness: Readonly<Record<string, () => Promise<void>>>;
  close(): void;
}

/** `AUTH_REQUIRED=false` (§5.5): callers have no user context, and there is no key set to wait for. */
const disabledAuth: Auth = {
  authenticate: () => undefined,
  reload: undefined,
  inspectToken: () => ({ sub: undefined, problem: undefined }),
  verifyToken: () => undefined,
  getChallenge: undefined,
  describeKeySet: undefined,
  readiness: {},
  close() {},
};

/** Parts, in addition to the settings, that determine which callers are admitted. */
interface AuthSources {
  /** Returns true for an audience that is accepted in addition to `OIDC_AUDIENCE`. */
  readonly isServerAudience: (audience: string) => boolean;
  /** Called with each refusal of a token. */
  readonly onRefusal?: OnRefusal | undefined;
  /** In broker mode. */
  readonly ownTokens?: OwnTokenAccess | undefined;
  /** Replaces the provider's key set. */
  readonly keySet?: KeySet | undefined;
}

type OwnTokenAccess = ReturnType<typeof openOwnTokenAccess>;

/** Opens access by the gateway's own tokens. @throws Error if the settings have no such tokens. */
export function openOwnTokenAccess(
  runtime: Runtime,
  ownTokens: OwnTokens,
  machineClients: MachineClients,
) {
  const { oauth } = runtime.config;
  if (oauth.mode !== 'broker') throw new Error('Clients get tokens of the provider');
  return {
    ...createOwnTokenVerifier(runtime, ownTokens, oauth, machineClients),
    /**
     * `OAUTH_ACCEPT_PROVIDER_TOKENS`: checks that the user of such a token may use the gateway. Undefined if none is accepted.
     *
     * @throws GatewayError if the user may not.
     */
    checkProviderUser: oauth.tokens.acceptsProviderTokens
      ? createCheckTokenUser(oauth.identity)
      : undefined,
  };
}

/** Verifies a provider token, or one of the gateway's own. */
function createVerify(
  verifyProviderToken: TokenVerifier['verify'],
  ownTokens: OwnTokenAccess | undefined,
): VerifyBearer {
  if (ownTokens === undefined) return verifyProviderToken;
  const { checkProviderUser } = ownTokens;
  if (checkProviderUser === undefined) return ownTokens.verify;

  async function verifyUser(token: string, beforeFetch: (() => Promise<void>) | undefined) {
    const user = await verifyProviderToken(token, beforeFetch);
    checkProviderUser?.(user);
    const { sub } = user;
    // Rules see the `sub` only.
    return sub.startsWith(MACHINE_SUBJECT_PREFIX)
      ? failToken(describeMachineSubject('token', sub), { found: sub, expected: 'a user' })
      : user;
  }

  return (token, beforeFetch, path) =>
    isOwnToken(token) ? ownTokens.verify(token, beforeFetch, path) : verifyUser(token, beforeFetch);
}

// For the composition root: provider metadata and authentication.

export interface ProviderAccess {
  /** Undefined without a provider. */
  readonly metadata: ProviderMetadata | undefined;
  /** Undefined if no signature of the provider is checked. */
  readonly keySet: KeySet | undefined;
  readonly auth: Auth;
}

/** Sets up provider metadata and authentication. `isServer` returns true if `/mcp/<name>` exists. */
export function createProviderAccess(
  runtime: Pick<Runtime, 'config' | 'fetch' | 'clock' | 'log' | 'metrics'>,
  isServer: (name: string) => boolean,
  sources: AuthSources,
): ProviderAccess {
  const { server, http, auth, oauth } = runtime.config;
  const { ownTokens, isServerAudience, onRefusal } = sources;
  const provider = auth.required ? auth.provider : oauth.provider;
  if (provider === undefined) return { metadata: undefined, keySet: undefined, auth: disabledAuth };
  const metadata = openProviderMetadata(runtime, provider);
  if (!auth.required && ownTokens === undefined)
    return { metadata, keySet: undefined, auth: disabledAuth };
  const keySet = sources.keySet ?? openKeySet(runtime, { url: provider.jwksUrl, metadata });
  keySet.start();
  if (!auth.required) return { metadata, keySet, auth: { ...disabledAuth, close: keySet.close } };
  const { issuer, audience, audienceClaim, quirks } = provider;
  const verifier = createTokenVerifier(runtime.clock, keySet, {
    issuer,
    baseUrl: server.baseUrl,
    audience,
    audienceClaim,
    foreignClaims: listForeignClaims(quirks),
    isServerAudience,
    maxTokenBytes: http.maxTokenBytes,
    signatureMemory: auth.signatureMemory,
    clockToleranceSeconds: auth.clockToleranceSeconds,
  });
  const verify = createVerify(verifier.verify, ownTokens);
  const getChallenge = createChallenge(server.baseUrl, oauth.mode, isServer);
  // Times nothing without metrics.
  const recording = server.metricsEnabled ? runtime : undefined;
  return {
    metadata,
    keySet,
    auth: {
      authenticate: createAuthenticate(verify, getChallenge, onRefusal, recording),
      reload: ownTokens?.reload,
      inspectToken: verifier.inspect,
      verifyToken: (token) => verifier.verify(token, async () => fail('key_set_unavailable')),
      getChallenge,
      describeKeySet: keySet.describe,
      // The gateway's own tokens are valid even if the provider is down.
      readiness:
        ownTokens === undefined
          ? {
              async keySet() {
                if (!keySet.isFetched) throw new Error('The key set was never fetched');
              },
            }
          : {},
      close: keySet.close,
    },
  };
}
