// What OAUTH_MODE=broker asks the provider for.

import type { Parameter } from '../provider-profiles.ts';
import { integer, list, NONE, ONE_YEAR_SECONDS, type Rule, scope } from '../rules.ts';
import { defineSetting, type ValuesOf } from '../setting.ts';
import { chooseByProvider } from './provider.ts';

const scopes: Rule<readonly string[]> = {
  parse(text) {
    if (text === NONE) return [];
    const read = text.split(/[\s,]+/).filter((one) => one !== '');
    return read.length > 0 && read.every(scope.parse) ? read : undefined;
  },
  allowed: 'a list of scopes, separated by spaces or commas, or none',
};

/** What the gateway decides on itself, or what could carry another request past it. */
const RESERVED =
  /^(client_.*|redirect_uri|response_.*|state|nonce|scope|resource|code_.*|request.*|registration)$/;

const parameters: Rule<readonly Parameter[]> = {
  parse(text) {
    if (text === NONE) return [];
    const pairs = [...new URLSearchParams(text)];
    const names = new Set(pairs.map(([name]) => name));
    const isGood = ([name, value]: Parameter) =>
      /^[\w.-]+$/.test(name) && value !== '' && !RESERVED.test(name);
    return pairs.length > 0 && names.size === pairs.length && pairs.every(isGood)
      ? pairs
      : undefined;
  },
  allowed:
    'name=value&name=value, each name once and none that the gateway sends itself (such as client_id, redirect_uri, state, scope), or none',
};

const allowedScopes = list(scope, 'a comma-separated list of scopes, or * for any');

const refreshTtl = integer(3600, ONE_YEAR_SECONDS * 10);
const NINETY_DAYS_SECONDS = 7_776_000;

export const brokerSettings = {
  allowedScopes: defineSetting('OAUTH_ALLOWED_SCOPES', allowedScopes, {
    default: { value: ['openid', 'profile', 'email', 'offline_access'] },
    summary: 'The scopes that clients may ask for.',
    details:
      'Others are left out of the request to the provider. All clients use what your client at the provider may do: add only what all of them may have. Those of OAUTH_ADDED_SCOPES are always asked for.',
    mode: 'broker',
  }),
  addedScopes: defineSetting('OAUTH_ADDED_SCOPES', scopes, {
    default: chooseByProvider(
      (profile) => profile.scopes,
      (names) => names.join(' ') || NONE,
    ),
    summary: 'Scopes to ask for beside those that the client names.',
    mode: 'broker',
  }),
  addedParameters: defineSetting('OAUTH_ADDED_PARAMETERS', parameters, {
    default: chooseByProvider(
      (profile) => profile.parameters,
      (pairs) => pairs.map((pair) => pair.join('=')).join('&') || NONE,
    ),
    summary: 'Further parameters of the authorization request to the provider.',
    details:
      'Not those that the gateway sends itself: `client_id`, `redirect_uri`, `response_type`, `response_mode`, `state`, `nonce`, `scope`, `resource`, `code_challenge`, `request` and the like.',
    mode: 'broker',
  }),
  refreshTtlSeconds: defineSetting('OAUTH_REFRESH_TTL_SECONDS', refreshTtl, {
    default: { value: NINETY_DAYS_SECONDS },
    summary: 'Seconds after its last refresh for which a login lives.',
    details: 'Each use starts them again.',
    mode: 'broker',
  }),
};

export type BrokerRequestConfig = ValuesOf<typeof brokerSettings>;
