// The token and revocation endpoints of an emulator (RFC 6749 §3.2, RFC 7009), and the tokens that it makes.
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Habits,
  type Login,
  type Refusal,
  readSeconds,
  type Surroundings,
  type TokenAnswer,
} from './habits.ts';
import { INVALID_GRANT, type Logins } from './logins.ts';

export interface TokenEndpointDeps {
  readonly habits: Habits;
  readonly here: Surroundings;
  readonly logins: Logins;
  /** How often each was asked. */
  readonly asked: { code: number; refresh: number };
  /** Whether the client is refused whatever it sends. */
  readonly refusesClient: () => boolean;
}

export function createTokenEndpoint(deps: TokenEndpointDeps) {
  const { habits, here, logins, asked, refusesClient } = deps;

  function refuse(req: IncomingMessage, res: ServerResponse, refusal: Refusal): void {
    const { status, body } = habits.renderRefusal(refusal);
    habits.send(req, res, status, body);
  }

  async function answerTokens(login: Login, { hasRefreshToken, hasIdToken }: Answered) {
    const { expiresIn } = habits;
    login.usedAt = readSeconds(here);
    const accessToken = await habits.createAccessToken(login, here);
    logins.keepAccessToken(accessToken, login, expiresIn);
    const refreshToken = habits.createRefreshToken();
    if (hasRefreshToken) logins.keepRefreshToken(refreshToken, login);
    const answer: TokenAnswer = {
      access_token: accessToken,
      token_type: 'Bearer',
      scope: login.scopes.join(' '),
      ...(expiresIn !== undefined && { expires_in: expiresIn }),
      ...(hasRefreshToken && { refresh_token: refreshToken }),
      ...(hasIdToken && { id_token: await createIdToken(deps, login, accessToken) }),
    };
    return habits.renderTokens(answer);
  }

  function redeem(form: URLSearchParams): (Answered & { login: Login }) | Refusal {
    asked.code += 1;
    const challenge = createHash('sha256').update(form.get('code_verifier') ?? '');
    const redeemed = logins.takeCode(form.get('code') ?? '', {
      redirectUri: form.get('redirect_uri') ?? '',
      challenge: challenge.digest('base64url'),
    });
    if (redeemed === undefined) return INVALID_GRANT;
    const { login, isFirst } = redeemed;
    const hasIdToken = habits.isOpenId && (login.scopes.includes('openid') || isBare(login));
    return { login, hasRefreshToken: habits.givesRefreshToken(login, isFirst), hasIdToken };
  }

  function refresh(form: URLSearchParams): (Answered & { login: Login }) | Refusal {
    asked.refresh += 1;
    const login = logins.useRefreshToken(form.get('refresh_token') ?? '');
    if ('error' in login) return login;
    const refusal = habits.refuseRefresh(login, form, here);
    if (refusal !== undefined) return refusal;
    const hasRefreshToken = habits.usedRefreshToken !== 'is kept';
    return { login, hasRefreshToken, hasIdToken: habits.isOpenId && habits.renewsIdToken };
  }

  const grants: Readonly<Record<string, typeof redeem>> = {
    authorization_code: redeem,
    refresh_token: refresh,
  };

  return {
    async answerToken(req: IncomingMessage, res: ServerResponse, form: URLSearchParams) {
      const refusal = refusesClient() ? INVALID_CLIENT : findClientRefusal(habits, here, req, form);
      // GitHub and Slack let one leave it out.
      const use = grants[form.get('grant_type') ?? 'authorization_code'];
      const used = refusal ?? use?.(form) ?? UNSUPPORTED;
      if ('error' in used) refuse(req, res, used);
      else habits.send(req, res, 200, await answerTokens(used.login, used));
    },
    answerRevoke(req: IncomingMessage, res: ServerResponse, form: URLSearchParams): void {
      const refusal = refusesClient() ? INVALID_CLIENT : findClientRefusal(habits, here, req, form);
      if (refusal !== undefined) {
        refuse(req, res, refusal);
        return;
      }
      here.revoke(form.get('token') ?? '');
      res.writeHead(200).end();
    },
  };
}

interface Answered {
  readonly hasRefreshToken: boolean;
  readonly hasIdToken: boolean;
}

/** A request without any scope: what is to be had then is not said anywhere. */
const isBare = ({ scopes }: Login): boolean => scopes.length === 0;

async function createIdToken(
  { habits, here }: Pick<TokenEndpointDeps, 'habits' | 'here'>,
  login: Login,
  accessToken: string,
): Promise<string> {
  const now = readSeconds(here);
  const nonce = login.asked.get('nonce');
  const members = { at_hash: hashHalf(accessToken), auth_time: login.authTime, sid: login.sid };
  return here.issuer.sign({
    aud: here.clientId,
    iat: now,
    exp: now + 300,
    ...(nonce !== null && { nonce }),
    ...Object.fromEntries(habits.idTokenMembers.map((name) => [name, members[name]])),
    ...habits.describeInIdToken(login, here),
  });
}

/** OpenID Connect Core §3.1.3.6, for RS256. */
const hashHalf = (text: string): string =>
  createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url');

const UNSUPPORTED: Refusal = {
  error: 'unsupported_grant_type',
  error_description: 'Only authorization_code and refresh_token are known here.',
};

const INVALID_CLIENT: Refusal = {
  status: 401,
  error: 'invalid_client',
  error_description: 'The client is not known, or its secret is wrong.',
};

/** RFC 6749 §2.3. */
function findClientRefusal(
  { clientAuth }: Habits,
  { clientId, clientSecret }: Surroundings,
  { headers }: IncomingMessage,
  form: URLSearchParams,
): Refusal | undefined {
  const [, basic] = /^Basic (.+)$/i.exec(headers.authorization ?? '') ?? [];
  const method = basic === undefined ? 'post' : 'basic';
  const [id, secret] =
    basic === undefined
      ? [form.get('client_id'), form.get('client_secret')]
      : Buffer.from(basic, 'base64').toString().split(':').map(decodeURIComponent);
  if (id !== clientId || secret !== clientSecret) return INVALID_CLIENT;
  if (clientAuth.includes(method)) return undefined;
  const [allowed = ''] = clientAuth;
  return {
    ...INVALID_CLIENT,
    error_description: `The OAuth 2.0 Client supports client authentication method 'client_secret_${allowed}', but method 'client_secret_${method}' was requested.`,
  };
}
