// §4.1, §4.6–§4.8: the endpoints of OAuth.
import type {
  ChosenLimit,
  Endpoint,
  JudgedRequest,
  PublicEndpoint,
} from '../http/endpoint/endpoint.ts';
import {
  type GatewayRequest,
  getHeader,
  getJson,
  type PendingReply,
  type RequestBody,
} from '../http/endpoint/message.ts';
import type { OwnPages } from '../http/endpoint/own-pages.ts';
import { parseBody } from '../http/endpoint/parameters.ts';
import { type ErrorFormat, OAUTH } from '../http/endpoint/render-error.ts';
import type { FindMachineLogin } from './broker/client-credentials.ts';
import type { RedirectToProvider } from './consent/consent.ts';
import { type LoginIndex, readAskedTokens } from './refresh/recent-answers.ts';
import type { ReadAuthorizationRequest } from './request/authorization-request.ts';
import { JWT_BEARER, readAskedFacts } from './request/login-facts.ts';

/** The part of a mode at the endpoints. Each judges the request, and returns the work to run once it is counted. */
export interface ModeAtEndpoints {
  /** `iss` of replies to clients (RFC 9207), where the gateway is its own issuer. */
  readonly issuer?: string;
  readonly readRequest: ReadAuthorizationRequest;
  readonly redirectToProvider: RedirectToProvider;
  /** `authorization` is the Authorization header of the caller. @throws GatewayError for an invalid request. */
  token(body: RequestBody, authorization: string | undefined): Promise<JudgedRequest>;
  /** Refreshes are counted apart: by login, so that one client's storm costs no other client anything. */
  readonly logins: LoginIndex;
  /** Not there where no client can log in as itself. */
  readonly findMachineLogin?: FindMachineLogin;
  revoke(body: RequestBody, authorization: string | undefined): Promise<JudgedRequest>;
  /** `cookie` is the Cookie header. Not there in proxy mode. */
  callback?(query: string, cookie: string | undefined): Promise<PendingReply>;
  /** Pages for users, and where the provider ends grants. None in proxy mode. */
  readonly ownEndpoints: readonly Endpoint[];
  /** For other features that have pages for users. Not there in proxy mode. */
  readonly ownPages?: OwnPages;
}

/** The endpoints where a client registers, and where a user lets it log in. */
export interface OAuthFront {
  authorize(query: string, cookie: string | undefined): Promise<PendingReply>;
  /** The form of the consent page; not there without one. */
  consent?(body: RequestBody, cookie: string | undefined): Promise<PendingReply>;
  register(metadata: unknown, authorization: string | undefined): Promise<PendingReply>;
}

/** `popups` is `OAUTH_POPUPS`: the pages of the login keep their opener. */
export function createOAuthEndpoints(
  popups: boolean,
  mode: ModeAtEndpoints,
  { authorize, consent, register }: OAuthFront,
): readonly Endpoint[] {
  const { callback } = mode;
  const loginPage = {
    ...PUBLIC,
    hasErrorPages: true,
    isNavigation: true,
    ...(popups && { headers: { 'Cross-Origin-Opener-Policy': 'unsafe-none' } }),
  };
  const consentEndpoint: PublicEndpoint | undefined = consent && {
    ...loginPage,
    ...FORM,
    method: 'POST',
    path: '/oauth/consent',
    limit: 'consent',
    judge: (request, body) => consent(body, getCookie(request)),
  };
  const callbackEndpoint: PublicEndpoint | undefined = callback && {
    ...loginPage,
    method: 'GET',
    path: '/oauth/callback',
    limit: 'callback',
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
      judge: (request: GatewayRequest) => authorize(request.query, getCookie(request)),
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
      chooseLimit: (body, request) => chooseTokenLimit(body, getAuthorization(request), mode),
      judge: (request, body) => mode.token(body, getAuthorization(request)),
    },
    {
      ...PUBLIC,
      method: 'POST',
      path: '/oauth/register',
      errors: REGISTRATION_ERRORS,
      limit: 'dcr',
      body: 'json',
      maxBodyBytes: MAX_BODY_BYTES,
      judge: (request, body) => register(getJson(body), getAuthorization(request)),
    },
    {
      ...PUBLIC,
      ...FORM,
      method: 'POST',
      path: '/oauth/revoke',
      errors: TOKEN_ERRORS,
      limit: 'token',
      judge: (request, body) => mode.revoke(body, getAuthorization(request)),
    },
    ...mode.ownEndpoints,
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
  { logins: { findKnownId, findLogin }, findMachineLogin }: ModeAtEndpoints,
): ChosenLimit {
  const { grant } = readAskedFacts(body);
  if ((grant === 'client_credentials' || grant === JWT_BEARER) && findMachineLogin !== undefined) {
    const login = findMachineLogin(body, authorization);
    return { group: 'machine', ...(login && { login }) };
  }
  if (grant !== 'refresh_token') return { group: 'token' };
  try {
    const parameters = parseBody(body);
    const refreshToken = parameters.require('refresh_token');
    const clientId = parameters.require('client_id');
    const find = () => findLogin(refreshToken, readAskedTokens(parameters, clientId));
    return { group: 'refresh', login: { knownId: findKnownId(refreshToken, clientId), find } };
  } catch {
    // An error of the request is told once it was counted.
    return { group: 'refresh' };
  }
}
