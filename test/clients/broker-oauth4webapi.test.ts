import * as oauth from 'oauth4webapi';
import { beforeAll, expect, test } from 'vitest';
import { logInAs } from '../../scripts/demo/login.ts';
import { REDIRECT_URI, startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';

const insecure = { [oauth.allowInsecureRequests]: true };
const STATE = 'a state of its own';

const env = { OAUTH_AUTHORIZATION_URL: '', OAUTH_TOKEN_URL: '', OAUTH_REVOCATION_URL: '' };
const service = useShared(() => startService({ mode: 'broker', env }));
let server: oauth.AuthorizationServer;

beforeAll(async () => {
  server = await discover('oauth2', service.baseUrl);
});

async function discover(algorithm: 'oauth2' | 'oidc', issuer: string) {
  const answer = await oauth.discoveryRequest(new URL(service.baseUrl), { algorithm, ...insecure });
  return oauth.processDiscoveryResponse(new URL(issuer), answer);
}

async function register(): Promise<oauth.Client> {
  const metadata = { redirect_uris: [REDIRECT_URI], token_endpoint_auth_method: 'none' };
  const answer = await oauth.dynamicClientRegistrationRequest(server, metadata, insecure);
  return oauth.processDynamicClientRegistrationResponse(answer);
}

/** As far as the callback. */
async function authorize({ client_id }: oauth.Client, further: Record<string, string> = {}) {
  const verifier = oauth.generateRandomCodeVerifier();
  const url = new URL(server.authorization_endpoint ?? '');
  url.search = new URLSearchParams({
    client_id,
    redirect_uri: REDIRECT_URI,
    response_type: 'code',
    scope: 'openid profile email',
    state: STATE,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    resource: service.mcpUrl.href,
    ...further,
  }).toString();
  const back = await logInAs('ada', url, REDIRECT_URI);
  if (back === undefined) throw new Error('The login went elsewhere.');
  return { back, verifier };
}

/** Checks state, and iss against the metadata (RFC 9207), and redeems the code. */
async function redeem(client: oauth.Client, back: URL, verifier: string) {
  const answer = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    oauth.None(),
    oauth.validateAuthResponse(server, client, back, STATE),
    REDIRECT_URI,
    verifier,
    insecure,
  );
  return oauth.processAuthorizationCodeResponse(server, client, answer);
}

async function logIn(client: oauth.Client) {
  const { back, verifier } = await authorize(client);
  const { access_token: access, refresh_token: refreshToken = '' } = await redeem(
    client,
    back,
    verifier,
  );
  return { access, refreshToken };
}

async function refresh(client: oauth.Client, token: string) {
  const answer = await oauth.refreshTokenGrantRequest(
    server,
    client,
    oauth.None(),
    token,
    insecure,
  );
  return oauth.processRefreshTokenResponse(server, client, answer);
}

async function revoke(client: oauth.Client, token: string) {
  const answer = await oauth.revocationRequest(server, client, oauth.None(), token, insecure);
  return oauth.processRevocationResponse(answer);
}

const invalidGrant = expect.objectContaining({ status: 400, error: 'invalid_grant' });

test.each(['oauth2', 'oidc'] as const)(
  "§4.10 broker: oauth4webapi accepts the gateway as the issuer of its %s metadata, and not the provider's",
  async (algorithm) => {
    const { issuer, ...endpoints } = await discover(algorithm, service.baseUrl);
    expect(issuer).toBe(service.baseUrl);
    expect(endpoints).toMatchObject({
      authorization_response_iss_parameter_supported: true,
      revocation_endpoint: `${service.baseUrl}/oauth/revoke`,
    });
    await expect(discover(algorithm, service.issuer)).rejects.toMatchObject({
      code: 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
    });
  },
);

test('§4.7 broker: oauth4webapi registers, logs in, calls, refreshes and revokes', async () => {
  const client = await register();
  const { back, verifier } = await authorize(client);
  expect([...back.searchParams.keys()].sort()).toEqual(['code', 'iss', 'state']);
  const tokens = await redeem(client, back, verifier);
  expect(tokens.token_type).toBe('bearer');
  expect(tokens).not.toHaveProperty('id_token');

  const call = await oauth.protectedResourceRequest(
    tokens.access_token,
    'DELETE',
    service.mcpUrl,
    new Headers({ 'mcp-session-id': crypto.randomUUID() }),
    null,
    insecure,
  );
  // The token is good; only the session is not there.
  expect(call.status).toBe(404);

  const refreshed = await refresh(client, tokens.refresh_token ?? '');
  expect(refreshed).not.toHaveProperty('id_token');
  // What is as fresh as this is given again.
  expect(refreshed.access_token).toBe(tokens.access_token);
  expect(refreshed.refresh_token).toBe(tokens.refresh_token);

  await revoke(client, refreshed.refresh_token ?? '');
  await expect(refresh(client, refreshed.refresh_token ?? '')).rejects.toEqual(invalidGrant);
});

test.each([
  ['without iss', (back: URL) => back.searchParams.delete('iss')],
  ["with the provider's iss", (back: URL) => back.searchParams.set('iss', service.issuer)],
])('§4.6 broker: oauth4webapi refuses the callback %s', async (_name, change) => {
  const client = await register();
  const { back } = await authorize(client);
  change(back);
  expect(() => oauth.validateAuthResponse(server, client, back, STATE)).toThrow(/"iss"|issuer/);
});

test("§4.6 broker: oauth4webapi gets the provider's refusal, in the gateway's name", async () => {
  const client = await register();
  // Nobody is logged in at the provider (OpenID Connect Core §3.1.2.6).
  const { back } = await authorize(client, { prompt: 'none' });
  expect(() => oauth.validateAuthResponse(server, client, back, STATE)).toThrow(
    expect.objectContaining({ error: 'login_required' }),
  );
});

test('§4.7 broker: a code used twice is invalid_grant', async () => {
  const client = await register();
  const { back, verifier } = await authorize(client);
  await redeem(client, back, verifier);
  await expect(redeem(client, back, verifier)).rejects.toEqual(invalidGrant);
});

test('§4.7 broker: a wrong code_verifier is invalid_grant, and uses the code up', async () => {
  const client = await register();
  const { back, verifier } = await authorize(client);
  const wrong = oauth.generateRandomCodeVerifier();
  await expect(redeem(client, back, wrong)).rejects.toEqual(invalidGrant);
  await expect(redeem(client, back, verifier)).rejects.toEqual(invalidGrant);
});

test('§4.7 broker: the code of another client is invalid_grant', async () => {
  const [client, thief] = await Promise.all([register(), register()]);
  const { back, verifier } = await authorize(client);
  await expect(redeem(thief, back, verifier)).rejects.toEqual(invalidGrant);
});

test('§4.7 broker: another client can neither refresh nor revoke a token, and its owner still can', async () => {
  const [client, thief] = await Promise.all([register(), register()]);
  const { refreshToken } = await logIn(client);
  await expect(refresh(thief, refreshToken)).rejects.toEqual(invalidGrant);
  await expect(revoke(thief, refreshToken)).rejects.toEqual(invalidGrant);

  const { refresh_token: next = '' } = await refresh(client, refreshToken);
  await expect(refresh(thief, next)).rejects.toEqual(invalidGrant);
  await expect(refresh(client, next)).resolves.toMatchObject({ token_type: 'bearer' });
});
