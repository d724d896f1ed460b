// GitHub: OAuth without OpenID Connect. There is no ID token and no discovery; who somebody is, its API says.
//
// https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps (paths, scopes, form-encoded answers)
// https://docs.github.com/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors
//   (errors come with status 200)
// https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens
//   (GitHub Apps: eight hours, a refresh token that is good once)
// https://docs.github.com/enterprise-server/rest/using-the-rest-api/getting-started-with-the-rest-api (/api/v3, User-Agent)
// https://docs.github.com/rest/apps/oauth-applications (DELETE /applications/{client_id}/token)
import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Habits,
  type Person,
  type Refusal,
  type Route,
  type Surroundings,
  sendJson,
} from './habits.ts';
import { OPENID_HABITS } from './openid-habits.ts';

const API = '/api/v3';

/** GitHub's own names for what RFC 6749 §5.2 calls otherwise. */
const ERRORS: Readonly<Record<string, Omit<Refusal, 'status'>>> = {
  invalid_grant: {
    error: 'bad_verification_code',
    error_description: 'The code passed is incorrect or expired.',
  },
  bad_refresh_token: {
    error: 'bad_refresh_token',
    error_description: 'The refresh token passed is incorrect or expired.',
  },
  invalid_client: {
    error: 'incorrect_client_credentials',
    error_description: 'The client_id and/or client_secret passed are incorrect.',
  },
};

/** An OAuth app: its tokens live until they are revoked, and there is no refresh. */
export const GITHUB: Habits = {
  ...OPENID_HABITS,
  title: 'GitHub',
  settings: { OIDC_PROVIDER: 'github' },
  addressSetting: 'GITHUB_URL',
  isOpenId: false,
  paths: {
    keys: '',
    authorize: '/login/oauth/authorize',
    token: '/login/oauth/access_token',
    userinfo: `${API}/user`,
  },
  clientAuth: ['post'],
  expiresIn: undefined,
  givesRefreshToken: () => false,
  createAccessToken: () => `gho_${randomBytes(18).toString('hex')}`,
  renderTokens: ({ scope, ...answer }) => ({
    ...answer,
    token_type: 'bearer',
    scope: scope.replaceAll(' ', ','),
  }),
  renderRefusal: ({ status: _, ...refusal }) => ({
    status: 200,
    body: {
      ...(ERRORS[refusal.error] ?? refusal),
      error_uri:
        'https://docs.github.com/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors',
    },
  }),
  send(req, res, status, body) {
    if (req.headers.accept?.includes('application/json')) return sendJson(res, status, body);
    const pairs = Object.entries(body).map(([name, value]): [string, string] => [
      name,
      String(value),
    ]);
    res
      .writeHead(status, { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' })
      .end(new URLSearchParams(pairs).toString());
  },
  createRoutes: (here) => ({
    ...Object.fromEntries(
      Object.entries(READS).map(([path, read]) => [`${API}${path}`, answerRead(here, read)]),
    ),
    [`${API}/applications/${here.clientId}/token`]: answerToken(here),
  }),
};

/** A GitHub App whose user access tokens expire, which is their default. */
export const GITHUB_APP: Habits = {
  ...GITHUB,
  title: 'GitHub App',
  expiresIn: 28_800,
  usedRefreshToken: 'is refused',
  spentRefusal: { error: 'bad_refresh_token', error_description: '' },
  givesRefreshToken: () => true,
  createAccessToken: () => `ghu_${randomBytes(18).toString('hex')}`,
  createRefreshToken: () => `ghr_${randomBytes(38).toString('hex')}`,
  // A GitHub App has permissions in place of scopes.
  renderTokens: (answer) => ({
    ...answer,
    token_type: 'bearer',
    scope: '',
    ...(answer.refresh_token !== undefined && { refresh_token_expires_in: 15_897_600 }),
  }),
};

interface Read {
  /** Scopes of an OAuth app of which one is needed; an empty list for none. */
  readonly scopes: readonly string[];
  /** How the want of them is answered. */
  readonly refusal: { readonly status: number; readonly message: string };
  read(person: Person): object;
}

/** The account's number: the name may change, and be somebody else's then. */
export const toGitHubId = (sub: string): number =>
  /^\d{1,15}$/.test(sub) ? Number(sub) : createHash('sha256').update(sub).digest().readUInt32BE(0);

const toLogin = ({ name }: Person): string => name.toLowerCase().replace(/[^a-z0-9]+/g, '-');

const NOT_FOUND = { status: 404, message: 'Not Found' };

const READS: Readonly<Record<string, Read>> = {
  '/user': {
    scopes: [],
    refusal: NOT_FOUND,
    // `email` is what the profile shows to everybody: mostly nothing.
    read: (person) => ({
      login: toLogin(person),
      id: toGitHubId(person.sub),
      type: 'User',
      name: person.name,
      email: null,
    }),
  },
  '/user/emails': {
    scopes: ['user:email', 'user'],
    refusal: NOT_FOUND,
    read: (person) => [
      {
        email: `${toGitHubId(person.sub)}+${toLogin(person)}@users.noreply.github.com`,
        primary: false,
        verified: true,
        visibility: null,
      },
      {
        email: person.email,
        primary: true,
        verified: person.isEmailVerified,
        visibility: 'private',
      },
    ],
  },
  '/user/orgs': {
    scopes: ['read:org', 'admin:org', 'user'],
    refusal: {
      status: 403,
      message: 'You need at least read:org scope or user scope to list your organizations.',
    },
    read: ({ groups }) =>
      groups
        .filter((group) => !group.includes('/'))
        .map((login) => ({ login, id: toGitHubId(login), description: '' })),
  },
  '/user/teams': {
    scopes: ['read:org', 'admin:org', 'user', 'repo'],
    refusal: NOT_FOUND,
    read: ({ groups }) =>
      groups
        .map((group) => group.split('/'))
        .flatMap(([login = '', slug]) =>
          slug === undefined
            ? []
            : [{ slug, name: slug, id: toGitHubId(`${login}/${slug}`), organization: { login } }],
        ),
  },
};

const answerRead =
  (here: Surroundings, { scopes, refusal, read }: Read): Route =>
  (req, res) => {
    if (refusesUserAgent(req, res)) return;
    const [, token = ''] = /^(?:Bearer|token) (.+)$/i.exec(req.headers.authorization ?? '') ?? [];
    const login = here.findLogin(token);
    if (login === undefined) return sendMessage(res, 401, 'Bad credentials');
    const isApp = token.startsWith('ghu_');
    if (!isApp) res.setHeader('x-oauth-scopes', login.scopes.join(', '));
    const isAllowed =
      isApp || scopes.length === 0 || scopes.some((one) => login.scopes.includes(one));
    if (!isAllowed) return sendMessage(res, refusal.status, refusal.message);
    const found = read(login.person);
    sendJson(res, 200, Array.isArray(found) ? takePage(found, req, res, here) : found);
  };

/** https://docs.github.com/rest/using-the-rest-api/using-pagination-in-the-rest-api: 30 on a page, 100 at most, `Link`. */
function takePage(
  all: readonly unknown[],
  req: IncomingMessage,
  res: ServerResponse,
  { origin }: Surroundings,
): readonly unknown[] {
  const url = new URL(req.url ?? '', origin);
  const size = Math.min(Number(url.searchParams.get('per_page') ?? 30), 100);
  const page = Number(url.searchParams.get('page') ?? 1);
  if (page * size < all.length) {
    url.searchParams.set('page', String(page + 1));
    res.setHeader('link', `<${url.href}>; rel="next"`);
  }
  return all.slice((page - 1) * size, page * size);
}

/** Ends one token; the app proves itself by its secret. */
const answerToken =
  (here: Surroundings): Route =>
  (req, res, _form, body) => {
    if (refusesUserAgent(req, res)) return;
    const { clientId, clientSecret } = here;
    const credentials = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
    if (req.headers.authorization !== `Basic ${credentials}`) {
      return sendMessage(res, 401, 'Bad credentials');
    }
    const { access_token: token }: { access_token?: string } = JSON.parse(body);
    if (token === undefined || here.findLogin(token) === undefined) {
      return sendMessage(res, NOT_FOUND.status, NOT_FOUND.message);
    }
    if (req.method === 'DELETE') here.revoke(token);
    res.writeHead(204).end();
  };

function refusesUserAgent(req: IncomingMessage, res: ServerResponse): boolean {
  if (req.headers['user-agent']) return false;
  res
    .writeHead(403, { 'content-type': 'text/html' })
    .end(
      'Request forbidden by administrative rules. Please make sure your request has a User-Agent header.',
    );
  return true;
}

const sendMessage = (res: ServerResponse, status: number, message: string): void =>
  sendJson(res, status, {
    message,
    documentation_url: 'https://docs.github.com/rest',
    status: String(status),
  });
