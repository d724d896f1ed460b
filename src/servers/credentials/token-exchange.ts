// §18.6, RFC 8693: `token-exchange`: the provider exchanges the caller's token for one for the server.

import { text } from '../../config/file/shapes/scalar.ts';
import { defineMember } from '../../config/file/shapes/shape.ts';
import { isScopeToken, textWith } from '../../config/rules.ts';
import {
  type GetProviderToken,
  identifyCredential,
  type UserContext,
} from '../../http/endpoint/message.ts';
import {
  createExchangeToken,
  createProviderApi,
  type ExchangeToken,
  type TokenExchangeResult,
} from '../../http/oauth-client/provider-api.ts';
import { createProviderEndpoints } from '../../http/oauth-client/provider-metadata.ts';
import type { GetToken } from '../../mcp/upstream/connection-ports.ts';
import { CredentialError, type UpstreamRuntime } from '../../mcp/upstream/upstream.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import { describeCause } from '../../platform/log.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import {
  AUDIENCE,
  defineCredentialType,
  describeMissingToken,
  NEEDS_LOGIN,
} from './credential-type.ts';

export interface TokenExchangeAuth {
  readonly type: 'token-exchange';
  readonly audience: string;
  readonly scope?: string;
}

const scopeMember = defineMember(
  'scope',
  text(
    textWith(
      (given) => given.split(' ').every(isScopeToken),
      'one or more scopes, with one space between them',
    ),
    { pattern: '\\S' },
  ),
  'The scopes to request, with token-exchange.',
);

export const tokenExchange = defineCredentialType<TokenExchangeAuth>({
  type: 'token-exchange',
  summary: 'a token of the provider for this server.',
  members: [AUDIENCE.member, scopeMember],
  required: [AUDIENCE.member],
  whyNoOthers: 'the identity provider makes the token, for the client of this gateway',
  read(members) {
    const scope = members.read(scopeMember);
    const audience = AUDIENCE.read(members);
    return audience === undefined
      ? undefined
      : { type: 'token-exchange', audience, ...(scope !== undefined && { scope }) };
  },
  requirements: [
    NEEDS_LOGIN,
    {
      checkedAt: 'start',
      isMet: ({ oauth }) => oauth.providerClient.id !== undefined,
      problem:
        'needs OAUTH_CLIENT_ID, and with most providers OAUTH_CLIENT_SECRET: the client with which the gateway requests tokens from the provider.',
    },
    {
      checkedAt: 'start',
      isMet: ({ oauth }) => oauth.provider?.login !== 'github',
      problem:
        'needs a provider that exchanges tokens (RFC 8693), and GitHub does not: use forward or identity.',
    },
  ],
  isOfCaller: true,
  needsUser: true,
  asksProvider: true,
  open(runtime, { metadata, getProviderToken }) {
    const { oauth } = runtime.config;
    // Uses the provider's token endpoint, with the gateway's own client.
    const exchangeToken: ExchangeToken =
      metadata === undefined || oauth.provider === undefined
        ? async () => ({ kind: 'refused', reason: 'there is no provider: set OIDC_ISSUER' })
        : createExchangeToken(
            oauth.providerClient,
            createProviderApi(runtime.fetch),
            createProviderEndpoints(oauth.endpoints, metadata),
          );
    return {
      openServer: ({ name }, auth) => ({
        getToken: createTokenExchange(runtime, name, auth, { exchangeToken, getProviderToken }),
      }),
    };
  },
});

interface TokenSources {
  readonly exchangeToken: ExchangeToken;
  readonly getProviderToken: GetProviderToken;
}

interface KeptToken {
  readonly token: string;
  /** Epoch milliseconds. */
  readonly renewAt: number;
}

interface Failure {
  readonly error: CredentialError;
  /** True if the provider refused; false if it could not be reached. */
  readonly isRefusal: boolean;
}

type Outcome = { readonly token: string } | Failure;

/** A token must still be valid when it arrives. */
const RESERVE_MS = 5000;
/** Milliseconds that a caller with a still valid token waits for the next one. */
const RENEWAL_WAIT_MS = 1000;
/** Assumed if the provider does not state the token's lifetime. */
const UNKNOWN_LIFETIME_SECONDS = 60;
/** Models retry immediately: the provider must not receive every attempt. */
const FAILURE_MS = 3000;

function createTokenExchange(
  { clock, log }: UpstreamRuntime,
  server: string,
  { audience, scope }: TokenExchangeAuth,
  { exchangeToken, getProviderToken }: TokenSources,
): GetToken {
  const tokens = createExpiringMap<KeptToken>('exchangedTokens', clock.now);
  const failures = createExpiringMap<Failure>('exchangeFailures', clock.now);
  const exchanges = createSingleFlight<string, Outcome>();
  const warn = createWarnThrottle(clock, (reason: string) =>
    log.warn('The provider made no token for a server. Check its client, audience and scope.', {
      server,
      audience,
      reason,
    }),
  );

  return function getToken({ user }) {
    if (user === undefined) return undefined;
    // There is no token to exchange, and the provider is not at fault.
    if (user.grant?.isMachine) throw new CredentialError(describeMissingToken(user));
    const hash = identifyCredential(user);
    const kept = tokens.get(hash);
    return kept !== undefined && clock.now() < kept.renewAt ? kept.token : renew(hash, user, kept);
  };

  /** While the provider cannot be reached, the previous token is used until it expires. */
  async function renew(hash: string, user: UserContext, before: KeptToken | undefined) {
    const outcome = failures.get(hash) ?? (await exchangeInTime(hash, user, before));
    if ('token' in outcome) return outcome.token;
    if (before === undefined || outcome.isRefusal || tokens.get(hash) !== before)
      throw outcome.error;
    return before.token;
  }

  function exchangeInTime(
    hash: string,
    user: UserContext,
    before: KeptToken | undefined,
  ): Promise<Outcome> {
    const exchanging = exchanges.run(hash, () => exchange(hash, user));
    if (before === undefined) return exchanging;
    return new Promise((resolve, reject) => {
      const late = { error: new CredentialError(UNREACHABLE), isRefusal: false };
      const cancel = clock.after(RENEWAL_WAIT_MS, () => resolve(late));
      exchanging.then(resolve, reject).finally(cancel);
    });
  }

  async function exchange(hash: string, user: UserContext): Promise<Outcome> {
    const startedAt = clock.now();
    let result: TokenExchangeResult;
    try {
      const subjectToken = await getProviderToken(user);
      if (subjectToken === undefined) return noteFailure(hash, describeMissingToken(user), true);
      result = await exchangeToken({ subjectToken, audience, scope });
    } catch (error) {
      return noteFailure(hash, describeCause(error), false);
    }
    if (result.kind === 'refused') return noteFailure(hash, result.reason, true);
    const seconds = result.expiresInSeconds ?? UNKNOWN_LIFETIME_SECONDS;
    const callerEndsAt = readEnd(user) ?? startedAt;
    const endsAt = startedAt + seconds * 1000;
    const renewAt = Math.min(endsAt - RESERVE_MS, callerEndsAt);
    const { token } = result;
    tokens.set(hash, { token, renewAt }, Math.min(endsAt, callerEndsAt));
    return { token };
  }

  function noteFailure(hash: string, reason: string, isRefusal: boolean): Failure {
    warn(reason);
    const error = new CredentialError(isRefusal ? REFUSED : UNREACHABLE, {
      cause: new Error(reason),
    });
    const failure = { error, isRefusal };
    failures.set(hash, failure, clock.now() + FAILURE_MS);
    return failure;
  }
}

/** The expiry of a user's token in epoch milliseconds. With a grant, the token is requested for each call. */
function readEnd({ grant, claims: { exp } }: UserContext) {
  if (grant !== undefined) return Number.POSITIVE_INFINITY;
  return typeof exp === 'number' ? exp * 1000 : undefined;
}

const UNREACHABLE = 'the identity provider could not be reached to get access to it';

const REFUSED =
  'the identity provider gives this login no access to it; only the operator of this service can change that';
