// A client of a service under test that registers, logs in and keeps every secret it saw.
import { createHash, randomBytes } from 'node:crypto';
import { logInAs } from '../../../scripts/demo/login.ts';
import { REDIRECT_URI } from './service.ts';

export interface LoggedIn {
  readonly clientId: string;
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly code: string;
  readonly verifier: string;
  readonly challenge: string;
  readonly state: string;
}

/** Registers a client; resolves to its id. */
export async function register(url: string, metadata: object = {}): Promise<string> {
  const answer = await fetch(`${url}/oauth/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [REDIRECT_URI], ...metadata }),
  });
  const { client_id: id } = (await parsed(answer)) as { client_id: string };
  return id;
}

/** The address to which a client sends the browser. */
export function authorizationUrl(url: string, clientId: string, given: object = {}): URL {
  const at = new URL(`${url}/oauth/authorize`);
  at.search = new URLSearchParams({
    client_id: clientId,
    redirect_uri: REDIRECT_URI,
    response_type: 'code',
    state: 'state',
    code_challenge: createHash('sha256').update('verifier').digest('base64url'),
    code_challenge_method: 'S256',
    ...given,
  }).toString();
  return at;
}

/** Where the service sends the browser, or the status with which it refuses. */
export async function authorize(url: string, clientId: string): Promise<string> {
  const answer = await fetch(authorizationUrl(url, clientId), { redirect: 'manual' });
  return answer.headers.get('location') ?? String(answer.status);
}

export const postForm = (
  url: string,
  form: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> => fetch(url, { method: 'POST', headers, body: new URLSearchParams(form) });

/** The whole way through the service; `url` is one under which the provider knows it. */
export async function logIn(url: string, name: string): Promise<LoggedIn> {
  const clientId = await register(url);
  const verifier = randomBytes(32).toString('base64url');
  const state = randomBytes(16).toString('base64url');
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const start = authorizationUrl(url, clientId, { state, code_challenge: challenge });
  const back = await logInAs(name, start, REDIRECT_URI);
  const code = back?.searchParams.get('code') ?? '';
  const answer = await postForm(`${url}/oauth/token`, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT_URI,
    client_id: clientId,
    code_verifier: verifier,
  });
  const tokens = (await parsed(answer)) as { access_token: string; refresh_token: string };
  return {
    ...{ clientId, code, verifier, challenge, state },
    accessToken: tokens.access_token,
    refreshToken: tokens.refresh_token,
  };
}

async function parsed(answer: Response): Promise<unknown> {
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.url} answered ${answer.status}: ${text}`);
  return JSON.parse(text);
}
