// What real providers answer to the gateway's authorization and token requests, as their documentation and their users
// tell it, and what `postern doctor` makes of it.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { runDoctor } from '../support/gateway/doctor.ts';
import { endPosterns } from '../support/gateway/process.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { startUpstream } from '../support/oauth/upstream.ts';

afterEach(endPosterns);

interface Answer {
  readonly status: number;
  readonly location?: string;
  readonly body?: string;
}

interface Behaviour {
  /** To the authorization request. */
  authorize(query: URLSearchParams): Answer;
  /** To the token request. */
  readonly token: Answer;
}

const CALLBACK = 'http://localhost:9/oauth/callback';
const KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
  y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM',
};

/** A server that answers as a provider does. */
async function startProviderThat({ authorize, token }: Behaviour) {
  const server = createServer((req, res) => answer(req, res));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  function answer(req: IncomingMessage, res: ServerResponse): void {
    const { pathname, searchParams } = new URL(req.url ?? '', url);
    const document = {
      issuer: url,
      jwks_uri: `${url}/keys`,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
    };
    if (pathname === '/authorize') send(res, authorize(searchParams), 'text/html');
    else if (pathname === '/token') send(res, token, 'application/json');
    else if (pathname === '/keys') send(res, json(200, { keys: [KEY] }), 'application/json');
    else send(res, json(200, document), 'application/json');
  }

  return {
    url,
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

function send(res: ServerResponse, { status, location, body = '' }: Answer, type: string): void {
  res
    .writeHead(status, { 'Content-Type': type, ...(location && { Location: location }) })
    .end(body);
}

async function diagnose(behaviour: Partial<Behaviour>) {
  const provider = closeAfterTest(
    await startProviderThat({
      authorize: cameBack('login_required'),
      token: INVALID_GRANT,
      ...behaviour,
    }),
  );
  return runDoctor(undefined, {
    env: {
      OIDC_ISSUER: provider.url,
      OAUTH_MODE: 'broker',
      OAUTH_CLIENT_ID: 'gateway',
      OAUTH_CLIENT_SECRET: 'secret',
      BASE_URL: 'http://localhost:9',
      HOST: '127.0.0.1',
      CIMD_ALLOWED_HOSTS: 'none',
    },
  });
}

const json = (status: number, body: object): Answer => ({ status, body: JSON.stringify(body) });
const INVALID_GRANT = json(400, { error: 'invalid_grant' });

/** RFC 6749 §4.1.2.1, to a redirect URI that is known. */
const cameBack =
  (error: string, description = '') =>
  (query: URLSearchParams): Answer => {
    const parameters = new URLSearchParams({ error, error_description: description });
    return { status: 302, location: `${query.get('redirect_uri')}?${parameters}` };
  };

const page = (status: number, text: string) => (): Answer => ({
  status,
  body: `<html><head><title>Error</title><style>.callback{}</style></head><body><h1>We are sorry …</h1><p>${text}</p></body></html>`,
});

describe('the redirect URI', () => {
  const rows: readonly [
    provider: string,
    authorize: Behaviour['authorize'],
    check: string,
    status: string,
  ][] = [
    ['any: login_required', cameBack('login_required'), 'provider.redirect-uri', 'ok'],
    [
      'Entra: AADSTS50058',
      cameBack(
        'login_required',
        'AADSTS50058: A silent sign-in request was sent but no user is signed in.',
      ),
      'provider.redirect-uri',
      'ok',
    ],
    [
      'Google: interaction_required',
      cameBack('interaction_required'),
      'provider.redirect-uri',
      'ok',
    ],
    ['Keycloak', page(400, 'Invalid parameter: redirect_uri'), 'provider.redirect-uri', 'failure'],
    ['Keycloak, no such client', page(400, 'Client not found.'), 'provider.client-id', 'failure'],
    [
      'Okta',
      page(
        400,
        "The 'redirect_uri' parameter must be a Login redirect URI in the client app settings.",
      ),
      'provider.redirect-uri',
      'failure',
    ],
    [
      'Okta, no such client',
      page(400, "Invalid value for 'client_id' parameter."),
      'provider.client-id',
      'failure',
    ],
    [
      'Auth0',
      page(
        403,
        'Callback URL mismatch. The provided redirect_uri is not in the list of allowed callback URLs.',
      ),
      'provider.redirect-uri',
      'failure',
    ],
    [
      'Entra',
      page(
        200,
        'AADSTS50011: The redirect URI specified in the request does not match the redirect URIs configured for the application.',
      ),
      'provider.redirect-uri',
      'failure',
    ],
    [
      'Entra, no such client',
      page(
        200,
        "AADSTS700016: Application with identifier 'gateway' was not found in the directory.",
      ),
      'provider.client-id',
      'failure',
    ],
    [
      'dex',
      page(400, 'Unregistered redirect_uri ("http://localhost:9/oauth/callback").'),
      'provider.redirect-uri',
      'failure',
    ],
    [
      'Google',
      () => ({
        status: 302,
        location: `/signin/oauth/error?authError=${Buffer.from('\n\u0015redirect_uri_mismatch\u0012 You cannot sign in').toString('base64')}&client_id=gateway`,
      }),
      'provider.redirect-uri',
      'failure',
    ],
    [
      'Cognito',
      () => ({ status: 302, location: '/error?error=redirect_mismatch&client_id=gateway' }),
      'provider.redirect-uri',
      'failure',
    ],
    [
      'authentik',
      page(
        400,
        'Redirect URI Error. The request fails due to a missing, invalid, or mismatching redirection URI.',
      ),
      'provider.redirect-uri',
      'failure',
    ],
    [
      'a wrong scope',
      cameBack('invalid_scope', 'no such scope'),
      'provider.authorization-request',
      'failure',
    ],
    [
      'Auth0, no such API',
      cameBack('access_denied', 'Service not found: http://localhost:9/mcp'),
      'provider.authorization-request',
      'failure',
    ],
    [
      'one that shows its login page to everybody',
      page(200, 'Log in'),
      'provider.redirect-uri',
      'unknown',
    ],
    [
      'one without prompt=none',
      (query) =>
        query.get('redirect_uri') === CALLBACK
          ? { status: 302, location: '/login' }
          : { status: 302, location: '/problem' },
      'provider.redirect-uri',
      'ok',
    ],
  ];
  test.each(rows)('§20.2 doctor: %s', async (_name, authorize, check, status) => {
    const { find } = await diagnose({ authorize });
    expect(find(check).status).toBe(status);
  });
});

describe('the client and its secret', () => {
  const CHECK = 'provider.client-secret';
  const rows: readonly [provider: string, token: Answer, check: string, status: string][] = [
    ['any: invalid_grant', INVALID_GRANT, CHECK, 'ok'],
    [
      'dex: invalid_request',
      json(400, {
        error: 'invalid_request',
        error_description: 'Invalid or expired code parameter.',
      }),
      CHECK,
      'ok',
    ],
    [
      'Auth0: 403 invalid_grant',
      json(403, { error: 'invalid_grant', error_description: 'Invalid authorization code' }),
      CHECK,
      'ok',
    ],
    [
      'Auth0: 401 access_denied',
      json(401, { error: 'access_denied', error_description: 'Unauthorized' }),
      CHECK,
      'failure',
    ],
    [
      'Keycloak: 401 unauthorized_client',
      json(401, {
        error: 'unauthorized_client',
        error_description: 'Invalid client or Invalid client credentials',
      }),
      CHECK,
      'failure',
    ],
    [
      'Okta: 401 invalid_client',
      json(401, {
        error: 'invalid_client',
        error_description: 'The client secret supplied for a confidential client is invalid.',
      }),
      CHECK,
      'failure',
    ],
    ['Cognito: 400 invalid_client', json(400, { error: 'invalid_client' }), CHECK, 'failure'],
    [
      'Entra: AADSTS7000215',
      json(401, {
        error: 'invalid_client',
        error_description: 'AADSTS7000215: Invalid client secret provided.',
      }),
      CHECK,
      'failure',
    ],
    [
      'no token endpoint there',
      { status: 404, body: 'Not found' },
      'provider.token-endpoint',
      'failure',
    ],
    ['one in trouble', { status: 500, body: 'oops' }, 'provider.token-endpoint', 'failure'],
  ];
  test.each(rows)('§20.2 doctor: %s', async (_name, token, check, status) => {
    const { find } = await diagnose({ token });
    expect(find(check).status).toBe(status);
  });

  test('§20.2 doctor: Entra is asked for a token of the gateway for its own API, since it looks at codes first', async () => {
    const endpoint = closeAfterTest(await startUpstream());
    const { url } = closeAfterTest(
      await startProviderThat({ authorize: cameBack('login_required'), token: INVALID_GRANT }),
    );
    const tenant = '11111111-2222-3333-4444-555555555555';
    const diagnoseEntra = () =>
      runDoctor(undefined, {
        env: {
          OIDC_PROVIDER: 'entra',
          OIDC_ISSUER: `https://login.microsoftonline.com/${tenant}/v2.0`,
          OIDC_JWKS_URL: `${url}/keys`,
          OAUTH_AUTHORIZATION_URL: `${url}/authorize`,
          OAUTH_TOKEN_URL: `${endpoint.url}/token`,
          OAUTH_MODE: 'broker',
          OAUTH_CLIENT_ID: 'gateway',
          OAUTH_CLIENT_SECRET: 'secret',
          OAUTH_ADDED_SCOPES: 'offline_access api://gateway/mcp',
          BASE_URL: 'http://localhost:9',
          HOST: '127.0.0.1',
          CIMD_ALLOWED_HOSTS: 'none',
        },
      });
    endpoint.answer((res) => res.end(JSON.stringify({ access_token: 'a-secret-token' })));
    const { findings, find } = await diagnoseEntra();
    expect(find(CHECK).status).toBe('ok');
    expect(JSON.stringify(findings)).not.toContain('a-secret-token');
    expect(Object.fromEntries(endpoint.received.at(-1)?.form ?? [])).toMatchObject({
      grant_type: 'client_credentials',
      scope: 'api://gateway/.default',
    });
    endpoint.answer((res) => {
      const error_description = 'AADSTS7000215: Invalid client secret provided.';
      res.writeHead(401).end(JSON.stringify({ error: 'invalid_client', error_description }));
    });
    expect((await diagnoseEntra()).find(CHECK)).toMatchObject({
      status: 'failure',
      why: expect.stringContaining('AADSTS7000215'),
    });
  });
});
