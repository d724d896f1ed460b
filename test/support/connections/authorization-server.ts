// The authorization server of a protected server: RFC 8414, 6749 with PKCE, 7591, 7009, 9207.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose';
import type { Document, ServerHabits, TokenRefusal } from './habits.ts';
import type { RegisteredClient, ServerLogin, ServerLogins } from './logins.ts';

/** What the token endpoint does. `lost`: it does what it is asked, and its answer never arrives. */
export type TokenBehaviour =
  | 'ok'
  | 'error'
  | 'page'
  | 'busy'
  | 'hangs'
  | 'down'
  | 'lost'
  | 'refuses the client';

export interface AuthorizationServerDeps {
  readonly habits: ServerHabits;
  readonly logins: ServerLogins;
  /** Of the MCP server that it protects. */
  readonly getResource: () => string;
  /** `http://127.0.0.1:<port>`. */
  readonly getOrigin: () => string;
  readonly getBehaviour: () => TokenBehaviour;
  readonly getRegistrationBehaviour: () => TokenBehaviour;
  /** Called when a refresh was done, before it is answered. */
  readonly beforeRefreshAnswer: () => Promise<void> | void;
}

export type Answer = (
  req: IncomingMessage,
  res: ServerResponse,
  body: string,
  url: URL,
) => Promise<void> | void;

/** Of one listener, by path. */
export type Routes = ReadonlyMap<
  string | undefined,
  { readonly endpoint: string; readonly answer: Answer }
>;

/** In a browser that sends this cookie, this account is logged in there. */
export const ACCOUNT_COOKIE = 'account';
/** Of the page that asks for an account where none is. */
export const ACCOUNT_FORM = 'account-at-server';

export function createAuthorizationServer(deps: AuthorizationServerDeps) {
  const { habits, logins, getResource, getOrigin, getBehaviour } = deps;
  const getIssuer = () => `${getOrigin()}${habits.issuerPath}`;

  const describe = (): Document => ({
    issuer: getIssuer(),
    authorization_endpoint: `${getOrigin()}/authorize`,
    token_endpoint: `${getOrigin()}/token`,
    revocation_endpoint: `${getOrigin()}/revoke`,
    ...(habits.registration !== 'none' && { registration_endpoint: `${getOrigin()}/register` }),
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: habits.clientAuth.map(toMethod),
    ...(habits.iss !== 'none' && { authorization_response_iss_parameter_supported: true }),
    ...(habits.takesClientDocuments && { client_id_metadata_document_supported: true }),
    ...habits.document,
  });

  function findAuthorizationRefusal(asked: URLSearchParams): string | undefined {
    if (asked.get('response_type') !== 'code') return 'unsupported_response_type';
    const resource = asked.get('resource');
    if (habits.resource === 'refused' && resource !== null) return 'invalid_target';
    if (habits.resource === 'needed' && resource !== getResource()) return 'invalid_target';
    return asked.get('code_challenge_method') === 'S256' ? undefined : 'invalid_request';
  }

  const isKnown = (asked: URLSearchParams): boolean => {
    const id = asked.get('client_id') ?? '';
    if (habits.takesClientDocuments && id.startsWith('https://')) return true;
    const client = logins.clients.get(id);
    return (
      client !== undefined &&
      (client.redirectUris?.includes(asked.get('redirect_uri') ?? '') ?? true)
    );
  };

  const answerAuthorize: Answer = (req, res, body, { searchParams: asked }) => {
    if (!isKnown(asked)) {
      res.writeHead(400).end('This client, or its redirect URI, is not known here.');
      return;
    }
    const [, cookie] = /(?:^|; )account=([^;]+)/.exec(req.headers.cookie ?? '') ?? [];
    const account =
      new URLSearchParams(body).get('account') ?? (cookie && decodeURIComponent(cookie));
    const refusal = findAuthorizationRefusal(asked);
    if (refusal === undefined && !account) return sendAccountForm(res, habits.title);
    const back = new URL(asked.get('redirect_uri') ?? '');
    const add = (name: string, value: string) => back.searchParams.set(name, value);
    if (refusal !== undefined) add('error', refusal);
    else if (account === 'nobody') add('error', 'access_denied');
    else add('code', logins.begin(account ?? '', asked));
    const state = asked.get('state');
    if (state !== null) add('state', state);
    if (habits.iss === 'right') add('iss', getIssuer());
    if (habits.iss === 'wrong') add('iss', 'https://other.example');
    res.writeHead(302, { location: back.href }).end();
  };

  const answerToken: Answer = async (req, res, body) => {
    const form = new URLSearchParams(body);
    if (misbehave(res, getBehaviour())) return;
    if (req.method !== 'POST') return void res.writeHead(405, { allow: 'POST' }).end();
    const isRefresh = form.get('grant_type') === 'refresh_token';
    const refuse = (status: number, error: string) =>
      send(
        res,
        habits.renderRefusal({ status, error, isRefresh, asked: body } satisfies TokenRefusal),
      );
    if (getBehaviour() === 'refuses the client') return refuse(401, 'invalid_client');
    const clientRefusal = await findClientRefusal(req, form);
    if (clientRefusal !== undefined) return refuse(401, clientRefusal);
    const resource = form.get('resource');
    if (habits.resource === 'refused' && resource !== null) return refuse(400, 'invalid_target');
    if (habits.resource === 'needed' && resource !== getResource()) {
      return refuse(400, 'invalid_target');
    }
    const login = isRefresh ? await takeRefreshToken(form) : logins.takeCode(form);
    if (login === undefined) return refuse(400, 'invalid_grant');
    const answer = { status: 200, body: habits.renderTokens(issueTokens(login, isRefresh)) };
    if (isRefresh) {
      await deps.beforeRefreshAnswer();
      login.isRefreshing = false;
    }
    if (getBehaviour() === 'lost') return void res.destroy();
    send(res, answer);
  };

  async function takeRefreshToken(form: URLSearchParams): Promise<ServerLogin | undefined> {
    const login = logins.useRefreshToken(form.get('refresh_token') ?? '');
    if (login?.clientId !== form.get('client_id')) return undefined;
    if (login.isRefreshing && habits.forbidsParallelRefresh) return undefined;
    login.isRefreshing = true;
    return login;
  }

  function issueTokens(login: ServerLogin, isRefresh: boolean): Document {
    const { access } = logins.issue(login);
    const hasRefresh =
      habits.hasRefreshTokens && !(isRefresh && habits.usedRefreshToken === 'is kept');
    return {
      access_token: access,
      token_type: 'Bearer',
      scope: login.scopes.join(' '),
      ...(habits.expiresIn !== undefined && { expires_in: habits.expiresIn }),
      ...(hasRefresh && { refresh_token: logins.issueRefreshToken(login) }),
    };
  }

  /** RFC 6749 §2.3. Puts the id of a Basic header into the form. */
  async function findClientRefusal(
    req: IncomingMessage,
    form: URLSearchParams,
  ): Promise<string | undefined> {
    const [, basic] = /^Basic (.+)$/i.exec(req.headers.authorization ?? '') ?? [];
    const [id, secret] =
      basic === undefined
        ? [form.get('client_id'), form.get('client_secret') ?? undefined]
        : Buffer.from(basic, 'base64').toString().split(':').map(decodeURIComponent);
    if (id) form.set('client_id', id);
    if (habits.takesClientDocuments && id?.startsWith('https://')) return undefined;
    const client = logins.clients.get(id ?? '');
    if (client === undefined || client.secret !== secret) return 'invalid_client';
    if (client.jwksUri !== undefined) {
      return (await isProven(client, form, req.url)) ? undefined : 'invalid_client';
    }
    const method = basic === undefined ? (secret === undefined ? 'none' : 'post') : 'basic';
    return habits.clientAuth.includes(method) ? undefined : 'invalid_client';
  }

  /** RFC 7523 §3. */
  const isProven = ({ id, jwksUri = '' }: RegisteredClient, form: URLSearchParams, path = '') =>
    jwtVerify(form.get('client_assertion') ?? '', createRemoteJWKSet(new URL(jwksUri)), {
      issuer: id,
      subject: id,
      audience: habits.assertionAudience === 'issuer' ? getIssuer() : getOrigin() + path,
      // Tests have a time of their own.
      currentDate: readIssueDate(form.get('client_assertion') ?? ''),
    }).then(
      () => true,
      () => false,
    );

  const answerRegister: Answer = (_req, res, body) => {
    if (misbehave(res, deps.getRegistrationBehaviour())) return;
    if (habits.registration === 'none') return void res.writeHead(404).end();
    const metadata: Partial<Record<string, unknown>> = JSON.parse(body);
    if (habits.registration === 'allow-list') {
      return send(res, { status: 403, body: { error: 'unauthorized_client' } });
    }
    const uris = metadata.redirect_uris;
    if (!Array.isArray(uris)) {
      return send(res, { status: 400, body: { error: 'invalid_redirect_uri' } });
    }
    const method = metadata.token_endpoint_auth_method ?? 'client_secret_basic';
    const jwksUri = method === 'private_key_jwt' ? String(metadata.jwks_uri) : undefined;
    const { id, secret } = logins.register(uris.map(String), {
      hasSecret: method !== 'none' && jwksUri === undefined,
      jwksUri,
    });
    send(res, {
      status: 201,
      body: {
        ...metadata,
        client_id: id,
        token_endpoint_auth_method: method,
        ...(secret !== undefined && { client_secret: secret, client_secret_expires_at: 0 }),
      },
    });
  };

  const answerRevoke: Answer = async (req, res, body) => {
    const form = new URLSearchParams(body);
    if (misbehave(res, getBehaviour())) return;
    if ((await findClientRefusal(req, form)) !== undefined) {
      return send(res, { status: 401, body: { error: 'invalid_client' } });
    }
    logins.revoke(form.get('token') ?? '');
    res.writeHead(200).end();
  };

  const answerMetadata: Answer = (_req, res) => send(res, { status: 200, body: describe() });

  const place = {
    oauth: `/.well-known/oauth-authorization-server${habits.issuerPath}`,
    'openid inserted': `/.well-known/openid-configuration${habits.issuerPath}`,
    'openid appended': `${habits.issuerPath}/.well-known/openid-configuration`,
    nowhere: undefined,
  }[habits.metadataPlace];

  const routes: Routes = new Map([
    [place, { endpoint: 'authorization server metadata', answer: answerMetadata }],
    ['/authorize', { endpoint: 'authorize', answer: answerAuthorize }],
    ['/token', { endpoint: 'token', answer: answerToken }],
    ['/register', { endpoint: 'register', answer: answerRegister }],
    ['/revoke', { endpoint: 'revoke', answer: answerRevoke }],
  ]);
  return { getIssuer, routes };
}

const toMethod = (name: string): string =>
  name === 'none' || name === 'private_key_jwt' ? name : `client_secret_${name}`;

const readIssueDate = (assertion: string): Date =>
  new Date(Number(decodeJwt(assertion).iat ?? 0) * 1000);

/** Whether the request is done with. */
function misbehave(res: ServerResponse, behaviour: TokenBehaviour): boolean {
  if (behaviour === 'error') res.writeHead(503).end('oops');
  else if (behaviour === 'page') {
    res.writeHead(200, { 'content-type': 'text/html' }).end('<html>Down for maintenance</html>');
  } else if (behaviour === 'busy') res.writeHead(429, { 'retry-after': '1' }).end('{}');
  else if (behaviour === 'down') res.destroy();
  else return behaviour === 'hangs';
  return true;
}

export const send = (
  res: ServerResponse,
  { status, body }: { readonly status: number; readonly body: Document },
): void =>
  void res
    .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    .end(JSON.stringify(body));

const sendAccountForm = (res: ServerResponse, title: string): void =>
  void res.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in</title></head><body>
<h1>${title}: log in</h1>
<form method="post" name="${ACCOUNT_FORM}">
<label for="account">Account</label>
<input id="account" name="account">
<button type="submit">Allow</button>
</form></body></html>`);
