// §5: authentication, put together: key set → token verifier → bearer token check.
import type { RequiredAuthConfig } from '../../config/groups/provider.ts';
import { fail } from '../../errors/gateway-error.ts';
import {
  type AuthRequest,
  createAuthenticate,
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
import { listForeignClaims } from './claims.ts';
import { type KeySet, type KeySetFacts, openKeySet } from './key-set.ts';
import {
  describeMachineSubject,
  MACHINE_SUBJECT_PREFIX,
  type MachineClients,
} from './machine-clients.ts';
import { createOwnTokenVerifier } from './own-tokens.ts';
import { failToken } from './parse-token.ts';
import { createTokenVerifier, type TokenInspection, type TokenVerifier } from './token-verifier.ts';

export interface Auth {
  /**
   * A promise only where a key has to be fetched first.
   *
   * @throws GatewayError with a reason of §7.1, or `key_set_unavailable`, at once or by the promise.
   */
  readonly authenticate: (
    request: AuthRequest,
    beforeFetch?: () => Promise<void>,
  ) => UserContext | undefined | Promise<UserContext>;
  /**
   * The user whom the gateway's own token let in, as its grant says now; undefined where there are no such tokens.
   *
   * @throws GatewayError as `authenticate`, by the promise.
   */
  readonly reload: ((user: UserContext) => Promise<UserContext>) | undefined;
  /**
   * Says what `authenticate` would of a token whose signature is good, judged by form and claims
   * alone, by the same rules. For tokens that came from the provider itself; never to let anybody in.
   */
  readonly inspectToken: (token: string) => TokenInspection;
  /**
   * The user of a token of the provider, which is judged in full as `authenticate` does, but with the keys at hand alone; undefined
   * when nobody has to log in.
   *
   * @throws GatewayError as `authenticate`, and `key_set_unavailable` where a key would have to be fetched.
   */
  readonly verifyToken: (token: string) => UserContext | undefined | Promise<UserContext>;
  /** Headers of a 401 at a path; undefined when nobody has to log in. */
  readonly getChallenge: GetChallenge | undefined;
  /** Undefined when nobody has to log in. */
  readonly describeKeySet: (() => KeySetFacts) | undefined;
  readonly readiness: Readonly<Record<string, () => Promise<void>>>;
  close(): void;
}

/** `AUTH_REQUIRED=false` (§5.5): no caller has a user context, and there is no key set to wait for. */
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

/** Parts that decide beside the settings who is let in. */
interface AuthSources {
  /** Tells whether a token may name it, beside `OIDC_AUDIENCE`. */
  readonly isServerAudience: (audience: string) => boolean;
  /** Told of each refusal of a token; nobody is unless given. */
  readonly onRefusal?: OnRefusal | undefined;
  /** In broker mode. */
  readonly ownTokens?: OwnTokenAccess | undefined;
  /** In place of the provider's own. */
  readonly keySet?: KeySet | undefined;
}

type AuthRuntime = Pick<Runtime, 'config' | 'fetch' | 'clock' | 'log' | 'metrics'>;

type OwnTokenAccess = ReturnType<typeof openOwnTokenAccess>;

/** Callers with tokens of the gateway's own. @throws Error where the settings have no such tokens. */
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
     * `OAUTH_ACCEPT_PROVIDER_TOKENS`: whether the user of such a token may use the gateway. Undefined where none is accepted.
     *
     * @throws GatewayError where they may not.
     */
    checkProviderUser: oauth.tokens.acceptsProviderTokens
      ? createCheckTokenUser(oauth.identity)
      : undefined,
  };
}

/** A token is verified by whoever issued it. */
function createVerify(
  verifyProviderToken: TokenVerifier['verify'],
  ownTokens: OwnTokenAccess | undefined,
): VerifyBearer {
  if (ownTokens === undefined) return verifyProviderToken;
  const { checkProviderUser } = ownTokens;
  if (checkProviderUser === undefined) return ownTokens.verify;

  const accept = (user: UserContext) => {
    checkProviderUser(user);
    const { sub } = user;
    // Rules see the `sub` alone.
    return sub.startsWith(MACHINE_SUBJECT_PREFIX)
      ? failToken(describeMachineSubject('token', sub), { found: sub, expected: 'a user' })
      : user;
  };

  return function verify(token, beforeFetch, path) {
    if (isOwnToken(token)) return ownTokens.verify(token, beforeFetch, path);
    const user = verifyProviderToken(token, beforeFetch);
    return user instanceof Promise ? user.then(accept) : accept(user);
  };
}

export function createAuth(
  runtime: AuthRuntime,
  { provider, clockToleranceSeconds, signatureMemory }: RequiredAuthConfig,
  getChallenge: GetChallenge,
  sources: AuthSources & { readonly keySet: KeySet },
): Auth {
  const { server, http } = runtime.config;
  const { issuer, audience, audienceClaim, quirks } = provider;
  const { keySet, ownTokens, isServerAudience, onRefusal } = sources;
  const verifier = createTokenVerifier(runtime.clock, keySet, {
    issuer,
    baseUrl: server.baseUrl,
    audience,
    audienceClaim,
    foreignClaims: listForeignClaims(quirks),
    isServerAudience,
    maxTokenBytes: http.maxTokenBytes,
    signatureMemory,
    clockToleranceSeconds,
  });
  const verify = createVerify(verifier.verify, ownTokens);
  // Without metrics nothing is timed.
  const recording = server.metricsEnabled ? runtime : undefined;
  keySet.start();
  return {
    authenticate: createAuthenticate(verify, getChallenge, onRefusal, recording),
    reload: ownTokens?.reload,
    inspectToken: verifier.inspect,
    verifyToken: (token) => verifier.verify(token, refuseFetch),
    getChallenge,
    describeKeySet: keySet.describe,
    // The gateway's own tokens are good whatever the provider does.
    readiness:
      ownTokens === undefined
        ? {
            async keySet() {
              if (!keySet.isFetched) throw new Error('The key set was never fetched');
            },
          }
        : {},
    close: keySet.close,
  };
}

const refuseFetch = async (): Promise<void> => fail('key_set_unavailable');

// For the composition root: what is known of the provider, and who is let in by its tokens.

export interface ProviderAccess {
  /** Undefined without a provider. */
  readonly metadata: ProviderMetadata | undefined;
  /** Undefined where nothing that the provider signed is looked at. */
  readonly keySet: KeySet | undefined;
  readonly auth: Auth;
}

/** Provider metadata and authentication. `isServer` says what there is at `/mcp/<name>`. */
export function createProviderAccess(
  runtime: AuthRuntime,
  isServer: (name: string) => boolean,
  sources: AuthSources,
): ProviderAccess {
  const { server, auth, oauth } = runtime.config;
  const provider = auth.required ? auth.provider : oauth.provider;
  if (provider === undefined) return { metadata: undefined, keySet: undefined, auth: disabledAuth };
  const metadata = openProviderMetadata(runtime, provider);
  if (!auth.required && sources.ownTokens === undefined)
    return { metadata, keySet: undefined, auth: disabledAuth };
  const keySet = sources.keySet ?? openKeySet(runtime, { url: provider.jwksUrl, metadata });
  if (!auth.required) {
    keySet.start();
    return { metadata, keySet, auth: { ...disabledAuth, close: keySet.close } };
  }
  const getChallenge = createChallenge(server.baseUrl, oauth.mode, isServer);
  return {
    metadata,
    keySet,
    auth: createAuth(runtime, auth, getChallenge, { ...sources, keySet }),
  };
}
