// §4.1, §4.6–§4.8: the endpoints of OAuth.

import type { ChosenLimit, Endpoint, PublicEndpoint } from '../http/endpoint/endpoint.ts';
import {
  type GatewayRequest,
  getHeader,
  getJson,
  type RequestBody,
} from '../http/endpoint/message.ts';
import { parseBody, type RequestParameters } from '../http/endpoint/parameters.ts';
import { type ErrorFormat, OAUTH } from '../http/endpoint/render-error.ts';
import type { OAuthHandlers } from './oauth.ts';
import { readAskedTokens } from './refresh/recent-answers.ts';
import { JWT_BEARER, readAskedFacts } from './request/login-facts.ts';

export interface OAuthEndpointOptions {
  /** `OAUTH_POPUPS`: the pages of the login keep their opener. */
  readonly popups: boolean;
}

export function createOAuthEndpoints(
  oauth: OAuthHandlers,
  { popups }: OAuthEndpointOptions,
): readonly Endpoint[] {
  const { consent, callback } = oauth;
  const loginPage = {
    ...PUBLIC,
    ...(popups && { headers: { 'Cross-Origin-Opener-Policy': 'unsafe-none' } }),
  };
  const consentEndpoint: PublicEndpoint | undefined = consent && {
    ...loginPage,
    ...FORM,
    method: 'POST',
    path: '/oauth/consent',
    limit: 'consent',
    hasErrorPages: true,
    isNavigation: true,
    judge: (request, body) => consent(body, getCookie(request)),
  };
  const callbackEndpoint: PublicEndpoint | undefined = callback && {
    ...loginPage,
    method: 'GET',
    path: '/oauth/callback',
    limit: 'callback',
    hasErrorPages: true,
    isNavigation: true,
    judge: (request) => callback(request.query, getCookie(request)),
  };

  return [
    {
      ...loginPage,
      method: 'GET',
      path: '/oauth/authorize',
      limit: 'authorize',
      hasErrorPages: callback !== undefined,
      isNavigation: consent !== undefined || callback !== undefined,
      judge: (request: GatewayRequest) => oauth.authorize(request.query, getCookie(request)),
    },
    ...(consentEndpoint ? [consentEndpoint] : []),
    ...(callbackEndpoint ? [callbackEndpoint] : []),
    {
      ...PUBLIC,
      ...FORM,
      method: 'POST',
      path: '/oauth/token',
      errors: TOKEN_ERRORS,
      limit: 'token',
      chooseLimit: (body, request) => chooseTokenLimit(body, getAuthorization(request), oauth),
      judge: (request, body) => oauth.token(body, getAuthorization(request)),
    },
    {
      ...PUBLIC,
      method: 'POST',
      path: '/oauth/register',
      errors: REGISTRATION_ERRORS,
      limit: 'dcr',
      body: 'json',
      maxBodyBytes: MAX_BODY_BYTES,
      judge: (request, body) => oauth.register(getJson(body), getAuthorization(request)),
    },
    {
      ...PUBLIC,
      ...FORM,
      method: 'POST',
      path: '/oauth/revoke',
      errors: TOKEN_ERRORS,
      limit: 'token',
      judge: (request, body) => oauth.revoke(body, getAuthorization(request)),
    },
    ...oauth.ownEndpoints,
  ];
}

const PUBLIC = { kind: 'public', errors: OAUTH } as const;

/** RFC 6749 §5.2: clients read what they get here as an OAuth error, and take anything else for a login that is over. */
const TOKEN_ERRORS: ErrorFormat = { ...OAUTH, limit: 'temporarily_unavailable' };

const REGISTRATION_ERRORS: ErrorFormat = { form: 'oauth', body: 'invalid_client_metadata' };

/** Anybody may send these, token or not: enough for ten redirect URIs and all other members. */
const MAX_BODY_BYTES = 65_536;

const FORM = { body: 'json or form', maxBodyBytes: MAX_BODY_BYTES } as const;

const getAuthorization = (request: GatewayRequest) => getHeader(request, 'authorization');

const getCookie = (request: GatewayRequest) => getHeader(request, 'cookie');

// §8: refreshes are counted by the login that they belong to, clients that log in as themselves by client, and everything else at
// the token endpoint by address.

function chooseTokenLimit(
  body: RequestBody,
  authorization: string | undefined,
  { logins: { findKnownId, findLogin }, findMachineLogin }: TokenLogins,
): ChosenLimit {
  const { grant } = readAskedFacts(body);
  if ((grant === 'client_credentials' || grant === JWT_BEARER) && findMachineLogin !== undefined) {
    const login = findMachineLogin(body, authorization);
    return { group: 'machine', ...(login && { login }) };
  }
  if (grant !== 'refresh_token') return { group: 'token' };
  const parameters = parseIfValid(body);
  const refreshToken = parameters?.get('refresh_token');
  const clientId = parameters?.get('client_id');
  if (!parameters || refreshToken === undefined || clientId === undefined)
    return { group: 'refresh' };
  const find = () => findLogin(refreshToken, readAskedTokens(parameters, clientId));
  return { group: 'refresh', login: { knownId: findKnownId(refreshToken, clientId), find } };
}

type TokenLogins = Pick<OAuthHandlers, 'logins' | 'findMachineLogin'>;

/** What is wrong with the request is said once it was counted. */
function parseIfValid(body: RequestBody): RequestParameters | undefined {
  try {
    return parseBody(body);
  } catch {
    return undefined;
  }
}
