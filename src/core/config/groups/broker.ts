// What OAUTH_MODE=broker asks the provider for.
import { ONE_YEAR_SECONDS } from '../durations.ts';
import type { Parameter, ResourceParameter } from '../provider-profiles.ts';
import { integer, list, NONE, oneOf, type Rule, scope } from '../rules.ts';
import { fixed, type Read, setting } from '../setting.ts';
import { ofProfile } from './provider.ts';

export interface BrokerRequestConfig {
  /** What clients may ask for; others are left out. `*` for any. */
  readonly allowedScopes: readonly string[];
  readonly addedScopes: readonly string[];
  /** Added to the authorization request. */
  readonly addedParameters: readonly Parameter[];
  /** Under which name the provider is told whom tokens are for. */
  readonly resourceParameter: ResourceParameter;
  /** For how long it is known which client a refresh token belongs to. */
  readonly refreshTtlSeconds: number;
}

const scopes: Rule<readonly string[]> = {
  parse(text) {
    if (text === NONE) return [];
    const read = text.split(/[\s,]+/).filter((one) => one !== '');
    return read.length > 0 && read.every(scope.parse) ? read : undefined;
  },
  allowed: 'a space or comma list of scopes, or none',
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
    'name=value&name=value, each name once, or none; not what the gateway itself sends (client_id, redirect_uri, response_type, response_mode, state, nonce, scope, resource, code_challenge, request and the like)',
};

const NINETY_DAYS_SECONDS = 7_776_000;

export const brokerSettings = {
  allowedScopes: setting({
    variable: 'OAUTH_ALLOWED_SCOPES',
    rule: list(scope, 'a comma list of scopes, or * for any'),
    default: fixed(['openid', 'profile', 'email', 'offline_access']),
    help: 'Scopes that clients may ask for with OAUTH_MODE=broker; others are left out. Every client uses what your client at the provider may do: add only what all of them may have. Those of OAUTH_ADDED_SCOPES are asked for in any case.',
  }),
  addedScopes: setting({
    variable: 'OAUTH_ADDED_SCOPES',
    rule: scopes,
    default: ofProfile(
      (profile) => profile.scopes,
      (names) => names.join(' ') || NONE,
    ),
    help: 'Scopes asked for beside those that the client names, in place of the default. OAUTH_MODE=broker only.',
  }),
  addedParameters: setting({
    variable: 'OAUTH_ADDED_PARAMETERS',
    rule: parameters,
    default: ofProfile(
      (profile) => profile.parameters,
      (pairs) => pairs.map((pair) => pair.join('=')).join('&') || NONE,
    ),
    help: 'Further parameters of the authorization request, in place of the default. OAUTH_MODE=broker only.',
  }),
  resourceParameter: setting<ResourceParameter>({
    variable: 'OAUTH_RESOURCE_PARAMETER',
    rule: oneOf('resource', 'audience', NONE),
    default: ofProfile((profile) => profile.resource),
    help: "Under which name the provider is told whom tokens are for (RFC 8707), in every request: the ones of OIDC_AUDIENCE that the client's resource names, else the first URI of OIDC_AUDIENCE, else BASE_URL/mcp. none tells it nothing. OAUTH_MODE=broker only.",
  }),
  refreshTtlSeconds: setting({
    variable: 'OAUTH_REFRESH_TTL_SECONDS',
    rule: integer(3600, ONE_YEAR_SECONDS * 10),
    default: fixed(NINETY_DAYS_SECONDS),
    help: 'Seconds for which the gateway remembers which client a refresh token belongs to; renewed on use. OAUTH_MODE=broker only.',
  }),
};

export const readBrokerRequest = (read: Read): BrokerRequestConfig => ({
  allowedScopes: read(brokerSettings.allowedScopes),
  addedScopes: read(brokerSettings.addedScopes),
  addedParameters: read(brokerSettings.addedParameters),
  resourceParameter: read(brokerSettings.resourceParameter),
  refreshTtlSeconds: read(brokerSettings.refreshTtlSeconds),
});
