// §18.6: `identity`: sends a token issued by the gateway that identifies the caller.
import { randomUUID } from 'node:crypto';
import { isSharedStore } from '../../config/groups/store.ts';
import { fail } from '../../errors/gateway-error.ts';
import { createJsonReply } from '../../http/endpoint/message.ts';
import { JSONRPC } from '../../http/endpoint/render-error.ts';
import type { GetToken } from '../../mcp/upstream/connection-ports.ts';
import {
  CredentialError,
  GATEWAY_CALLER,
  type UpstreamCaller,
} from '../../mcp/upstream/upstream.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { buildIdentityKeyName } from '../../store/keys.ts';
import { createSigningKeys, type SigningKeys, signJwt } from '../../store/seal/signing-keys.ts';
import { defineCredentialType } from './credential-type.ts';

export const identity = defineCredentialType<{ readonly type: 'identity' }>({
  type: 'identity',
  summary: 'a short-lived token of the gateway.',
  members: [],
  required: [],
  whyNoOthers: 'its audience is the server’s URL, and it has no scopes',
  read: () => ({ type: 'identity' }),
  requirements: [
    {
      checkedAt: 'file',
      isMet: ({ store, oauth }) => !isSharedStore(store) || oauth.stateSecret?.kind === 'given',
      problem:
        '"identity" with REDIS_URL needs OAUTH_STATE_SECRET, which seals the keys that all replicas share. Set it to the output of openssl rand -base64 48.',
    },
  ],
  isOfCaller: true,
  signsTokens: true,
  open(runtime) {
    const keys = createSigningKeys(runtime, runtime.getSeal, buildIdentityKeyName);
    const { server, auth, oauth } = runtime.config;
    const provider = auth.required ? auth.provider : oauth.provider;
    const issuer = createIdentityIssuer(runtime.clock, keys, server.baseUrl, provider?.issuer);
    return {
      openServer: ({ url }) => ({ getToken: createGetIdentity(issuer, url) }),
      createEndpoints: (isUsed) => [
        {
          // Serves the public keys with which servers verify these tokens. Answers 404 unless a server has `identity`.
          kind: 'open',
          method: 'GET',
          path: '/.well-known/jwks.json',
          errors: JSONRPC,
          async handle() {
            if (!isUsed()) fail('not_found');
            const keySet = await issuer.getKeySet();
            return createJsonReply(200, keySet, { 'Cache-Control': 'public, max-age=300' });
          },
        },
      ],
    };
  },
});

export const createGetIdentity =
  ({ issueToken }: ReturnType<typeof createIdentityIssuer>, url: string): GetToken =>
  (caller) =>
    issueToken(caller, url).catch((cause: unknown) => {
      throw new CredentialError('this service cannot sign now who calls', { cause });
    });

const LIFETIME_SECONDS = 60;
/** A token is reused until this much of its lifetime is left. */
const RESERVE_MS = 30_000;

/**
 * `baseUrl` is the issuer. `providerIssuer` is `OIDC_ISSUER`, since a `sub` alone does not identify a user; undefined without a
 * provider.
 */
export function createIdentityIssuer(
  clock: Clock,
  keys: SigningKeys,
  baseUrl: string,
  providerIssuer: string | undefined,
) {
  const memory = createExpiringMap<string>('identityTokens', clock.now);

  return {
    /** A JWT (ES256, 60 s) for the server at `url`. @throws StoreUnavailable without a key. */
    async issueToken(caller: UpstreamCaller, url: string) {
      const { user, clientId } = caller;
      const { origin, pathname } = new URL(url);
      const claims = {
        iss: baseUrl,
        // The audience omits the parts of the URL that may be secret: a query, and a user name and password.
        aud: origin + pathname,
        ...(user?.email !== undefined && { email: user.email }),
        ...(user?.emailVerified !== undefined && { email_verified: user.emailVerified }),
        ...(user?.groups !== undefined && { groups: user.groups }),
        ...(clientId !== undefined && { client: clientId }),
        sub: user?.sub ?? (caller === GATEWAY_CALLER ? baseUrl : NOBODY),
        ...(user && { idp: user.issuer ?? providerIssuer }),
      };
      const hash = hashSha256(JSON.stringify(claims));
      const known = memory.get(hash);
      if (known !== undefined) return known;
      const key = await keys.getSigningKey();
      const iat = Math.floor(clock.now() / 1000);
      const exp = iat + LIFETIME_SECONDS;
      const token = signJwt({ ...claims, iat, exp, jti: randomUUID() }, key);
      memory.set(hash, token, exp * 1000 - RESERVE_MS);
      return token;
    },
    /** RFC 7517: the keys with which servers verify these tokens. */
    getKeySet: async () => ({ keys: await keys.listPublicKeys() }),
  };
}

/** The subject of callers without a login, with `AUTH_REQUIRED=false`. A server must not mistake them for the gateway itself. */
const NOBODY = 'anonymous';
