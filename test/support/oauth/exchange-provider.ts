// A real `oidc-provider` that exchanges tokens (RFC 8693): a caller's for one of another audience, all signed.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose';
import { Provider } from 'oidc-provider';

export interface ExchangeProvider {
  readonly issuer: string;
  readonly jwksUrl: string;
  /** What a gateway has to be told about it. */
  readonly env: Readonly<Record<string, string>>;
  /** An access token of a user, as a login brings it. */
  issueToken(sub: string, audience: string): Promise<string>;
  /** How many tokens it has exchanged. */
  exchanged(): number;
  close(): Promise<void>;
}

const GRANT = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:access_token';
const CLIENT = { id: 'gateway', secret: 'the secret of the gateway' };
const PARAMETERS = [
  'subject_token',
  'subject_token_type',
  'requested_token_type',
  'audience',
  'scope',
];

/** It gives a token for `audience` alone, and to users of `gatewayAudience` alone. */
export async function startExchangeProvider(
  gatewayAudience: string,
  audience: string,
): Promise<ExchangeProvider> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
  const name = { kid: 'a', alg: 'RS256', use: 'sig' };
  const keySet = createLocalJWKSet({ keys: [{ ...(await exportJWK(publicKey)), ...name }] });
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        grant_types: ['authorization_code', GRANT],
        redirect_uris: ['https://gw.example/oauth/callback'],
        response_types: ['code'],
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), ...name }] },
    cookies: { keys: ['a key of the tests'] },
    scopes: ['openid', 'wiki.read'],
    features: { devInteractions: { enabled: false }, resourceIndicators: { enabled: true } },
    ttl: { AccessToken: 600 },
  });
  let count = 0;

  async function issue(sub: string, aud: string, scope = ''): Promise<string> {
    const client = await provider.Client.find(CLIENT.id);
    if (client === undefined) throw new Error('The provider does not know its client');
    const token = new provider.AccessToken({
      accountId: sub,
      client,
      scope,
      grantId: '',
      gty: 'token_exchange',
    });
    token.resourceServer = new provider.ResourceServer(aud, {
      scope,
      audience: aud,
      accessTokenFormat: 'jwt',
      jwt: { sign: { alg: 'RS256' } },
    });
    return token.save();
  }

  /** Undefined for a token that is not one of its own for the gateway. */
  const readSubject = (token: unknown): Promise<string | undefined> =>
    jwtVerify(String(token), keySet, { issuer, audience: gatewayAudience }).then(
      ({ payload }) => payload.sub,
      () => undefined,
    );

  provider.registerGrantType(
    GRANT,
    async (ctx) => {
      const params: Readonly<Record<string, unknown>> = ctx.oidc.params ?? {};
      const sub =
        params.subject_token_type === TOKEN_TYPE
          ? await readSubject(params.subject_token)
          : undefined;
      if (sub === undefined || params.audience !== audience) {
        ctx.status = 400;
        ctx.body = { error: sub === undefined ? 'invalid_request' : 'invalid_target' };
        return;
      }
      count += 1;
      ctx.body = {
        access_token: await issue(sub, audience, String(params.scope ?? '')),
        issued_token_type: TOKEN_TYPE,
        token_type: 'Bearer',
        expires_in: 600,
      };
    },
    PARAMETERS,
  );
  server.on('request', provider.callback());

  return {
    issuer,
    jwksUrl: `${issuer}/jwks`,
    env: {
      OIDC_ISSUER: issuer,
      OIDC_AUDIENCE: gatewayAudience,
      OAUTH_CLIENT_ID: CLIENT.id,
      OAUTH_CLIENT_SECRET: CLIENT.secret,
      OAUTH_CLIENT_AUTH: 'basic',
    },
    issueToken: (sub, aud) => issue(sub, aud),
    exchanged: () => count,
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
