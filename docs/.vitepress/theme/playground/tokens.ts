// §19.3: requests to the token endpoint. What it answers stays in memory, and nothing that is shown has it.
import { REFRESH_TOKEN, type Send } from './exchange.ts';
import { type JsonObject, parseObject, readText } from './json.ts';

export interface Tokens {
  readonly accessToken: string;
  /** Epoch milliseconds; undefined where the provider does not say. */
  readonly expiresAt: number | undefined;
  /** Undefined where there is none: the login then ends with the token. */
  readonly refreshToken: string | undefined;
}

/** Where tokens come from, and for whom. */
export interface TokenServer {
  readonly tokenEndpoint: string;
  /** Undefined where tokens cannot be revoked. */
  readonly revocationEndpoint: string | undefined;
  readonly clientId: string;
  /** RFC 8707: what the tokens are for. */
  readonly resource: string;
}

export interface Code {
  readonly value: string;
  readonly verifier: string;
  readonly redirectUri: string;
}

/** The authorization server answered, and gives no token. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused';
}

/** @throws Error in words for the user. */
export async function redeemCode(server: TokenServer, code: Code, send: Send): Promise<Tokens> {
  const answer = await send({
    title: 'Redeem the code',
    note: 'With the verifier that only this tab has (PKCE): the code alone is useless.',
    ...postForm(server.tokenEndpoint, {
      grant_type: 'authorization_code',
      code: code.value,
      redirect_uri: code.redirectUri,
      client_id: server.clientId,
      code_verifier: code.verifier,
      resource: server.resource,
    }),
  });
  return readTokens(answer.status, await answer.text());
}

/** @throws TokenRefused where there will be none any more, Error where another try may succeed. */
export async function renewTokens(
  server: TokenServer,
  refreshToken: string,
  send: Send,
): Promise<Tokens> {
  const form = {
    grant_type: 'refresh_token',
    client_id: server.clientId,
    resource: server.resource,
  };
  const answer = await send({
    title: 'Refresh the token',
    note: 'With the refresh token, before the access token expires. Both are only in the memory of this tab.',
    ...postForm(server.tokenEndpoint, { ...form, refresh_token: REFRESH_TOKEN }),
    sentBody: encodeForm({ ...form, refresh_token: refreshToken }),
  });
  const tokens = readTokens(answer.status, await answer.text());
  // RFC 6749 §6: without a new one, the old one stays.
  return { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken };
}

/** RFC 7009. Where it fails, the token ends by itself. */
export async function revokeToken(
  { revocationEndpoint, clientId }: TokenServer,
  refreshToken: string,
  send: Send,
): Promise<void> {
  if (revocationEndpoint === undefined) return;
  const form = { token_type_hint: 'refresh_token', client_id: clientId };
  const answer = await send({
    title: 'Revoke the refresh token',
    ...postForm(revocationEndpoint, { ...form, token: REFRESH_TOKEN }),
    sentBody: encodeForm({ ...form, token: refreshToken }),
  });
  await answer.text();
}

const encodeForm = (form: Readonly<Record<string, string>>): string =>
  new URLSearchParams(form).toString();

const postForm = (url: string, form: Readonly<Record<string, string>>) => ({
  method: 'POST' as const,
  url,
  headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' },
  body: encodeForm(form),
  hide: hideTokens,
});

function readTokens(status: number, text: string): Tokens {
  const body = parseObject(text);
  const accessToken = readText(body, 'access_token');
  if (status === 200 && accessToken !== undefined) {
    const seconds = body?.expires_in;
    return {
      accessToken,
      expiresAt: typeof seconds === 'number' ? Date.now() + seconds * 1000 : undefined,
      refreshToken: readText(body, 'refresh_token'),
    };
  }
  const reason = describeError(body);
  // RFC 6749 §5.2. What is the server's own trouble, or comes too often, may pass.
  const isFinal = status >= 400 && status < 500 && status !== 429;
  throw isFinal ? new TokenRefused(reason) : new Error(reason);
}

const SECRET_MEMBERS: Readonly<Record<string, string>> = {
  access_token: '$TOKEN',
  refresh_token: REFRESH_TOKEN,
  id_token: '$ID_TOKEN',
};

function hideTokens(text: string): string {
  const body = parseObject(text);
  if (body === undefined) return text;
  return JSON.stringify(body, (name, value: unknown) =>
    Object.hasOwn(SECRET_MEMBERS, name) ? SECRET_MEMBERS[name] : value,
  );
}

/** RFC 6749 §5.2, as a sentence. */
export function describeError(body: JsonObject | undefined): string {
  const text = readText(body, 'error_description') ?? readText(body, 'error');
  if (text === undefined) return 'The server gave no reason.';
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
