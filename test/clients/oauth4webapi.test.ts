import * as oauth from 'oauth4webapi';
import { expect, test } from 'vitest';
import { logInAs } from '../../scripts/demo/login.ts';
import { REDIRECT_URI, startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';

const insecure = { [oauth.allowInsecureRequests]: true };

const service = useShared(startService);

/** What the gateway publishes, read by a client that expects `issuer`. */
async function discover(issuer: string): Promise<oauth.AuthorizationServer> {
  const answer = await oauth.discoveryRequest(new URL(service.baseUrl), {
    algorithm: 'oauth2',
    ...insecure,
  });
  return oauth.processDiscoveryResponse(new URL(issuer), answer);
}

test("§4.10 oauth4webapi: refuses the gateway's metadata, whose issuer is the provider's", async () => {
  // The documented limit of the spec's `issuer` (RFC 8414 §3.3).
  await expect(discover(service.baseUrl)).rejects.toMatchObject({
    code: 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
    cause: { attribute: 'issuer' },
  });
});

test('§4.9 oauth4webapi: accepts the protected resource metadata of /mcp', async () => {
  const answer = await oauth.resourceDiscoveryRequest(service.mcpUrl, insecure);
  const resource = await oauth.processResourceDiscoveryResponse(service.mcpUrl, answer);
  expect(resource.authorization_servers).toEqual([service.baseUrl]);
});

test("§4.7 oauth4webapi: told the provider's issuer, it registers, logs in, refreshes and revokes", async () => {
  const server = await discover(service.issuer);
  const client = await register(server);
  expect(client.client_id).toMatch(/^svc-/);

  const tokens = await logIn(server, client);
  expect(tokens.token_type).toBe('bearer');
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

  const refreshed = await refresh(server, client, tokens.refresh_token ?? '');
  // The answer to a code is not given for a refresh.
  expect(refreshed.access_token).not.toBe(tokens.access_token);

  const revoked = await oauth.revocationRequest(
    server,
    client,
    oauth.None(),
    refreshed.refresh_token ?? '',
    insecure,
  );
  await oauth.processRevocationResponse(revoked);
  await expect(refresh(server, client, refreshed.refresh_token ?? '')).rejects.toMatchObject({
    error: 'invalid_grant',
  });
});

async function register(server: oauth.AuthorizationServer): Promise<oauth.Client> {
  const answer = await oauth.dynamicClientRegistrationRequest(
    server,
    {
      client_name: 'oauth4webapi',
      redirect_uris: [REDIRECT_URI],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
    },
    insecure,
  );
  return oauth.processDynamicClientRegistrationResponse(answer);
}

async function logIn(server: oauth.AuthorizationServer, client: oauth.Client) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(server.authorization_endpoint ?? '');
  url.search = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: REDIRECT_URI,
    response_type: 'code',
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    resource: service.mcpUrl.href,
  }).toString();
  const back = await logInAs('ada', url, REDIRECT_URI);
  if (back === undefined) throw new Error('The login went elsewhere.');
  // Checks state, and iss against the metadata (RFC 9207).
  const parameters = oauth.validateAuthResponse(server, client, back, state);
  const answer = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    oauth.None(),
    parameters,
    REDIRECT_URI,
    verifier,
    insecure,
  );
  return oauth.processAuthorizationCodeResponse(server, client, answer);
}

async function refresh(server: oauth.AuthorizationServer, client: oauth.Client, token: string) {
  const answer = await oauth.refreshTokenGrantRequest(
    server,
    client,
    oauth.None(),
    token,
    insecure,
  );
  return oauth.processRefreshTokenResponse(server, client, answer);
}
