// OIDC_PROVIDER, and the variables that overrule what its profile says.
import type { Config } from './config.ts';
import {
  type Parameter,
  PROVIDER_PROFILES,
  PROVIDERS,
  type Provider,
  type ProviderProfile,
  type ProviderSettings,
} from './provider-profiles.ts';
import { oneOf, type Rule, scope } from './rules.ts';
import type { Setting } from './setting.ts';

const NONE = 'none';

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
    const good = ([name, value]: Parameter) =>
      /^[\w.-]+$/.test(name) && value !== '' && !RESERVED.test(name);
    return pairs.length > 0 && names.size === pairs.length && pairs.every(good) ? pairs : undefined;
  },
  allowed:
    'name=value&name=value, each name once, or none; not what the gateway itself sends (client_id, redirect_uri, response_type, response_mode, state, nonce, scope, resource, code_challenge, request and the like)',
};

type Select = (profile: ProviderProfile) => string;

const scopesOf: Select = (profile) => profile.scopes.join(' ') || NONE;
const parametersOf: Select = (profile) =>
  profile.parameters.map((pair) => pair.join('=')).join('&') || NONE;

/** The default of the generic profile, then whose differs: it cannot go stale. */
function shown(select: Select): string {
  const usual = select(PROVIDER_PROFILES.generic);
  const values = new Set(PROVIDERS.map((name) => select(PROVIDER_PROFILES[name])));
  const others = [...values].filter((value) => value !== usual);
  const exceptions = others.map((value) => {
    const names = PROVIDERS.filter((name) => select(PROVIDER_PROFILES[name]) === value);
    return `${value} with ${names.join(', ')}`;
  });
  return `${usual} (${exceptions.join('; ')})`;
}

const profileOf = ({ oidcProvider }: Config): ProviderProfile => PROVIDER_PROFILES[oidcProvider];

export const oidcProvider: Setting<Provider> = {
  variable: 'OIDC_PROVIDER',
  rule: oneOf(...PROVIDERS),
  fallback: () => 'generic',
  shown: 'generic',
  help: 'Sets what this provider needs: the defaults of OAUTH_ADDED_SCOPES, OAUTH_ADDED_PARAMETERS, OAUTH_RESOURCE_PARAMETER, OAUTH_ACCESS_TOKEN, OAUTH_CLIENT_AUTH, OIDC_AUDIENCE and OIDC_AUDIENCE_CLAIM, and the form that OIDC_ISSUER must have.',
  chapter: 'Tokens',
};

/** All but `OIDC_PROVIDER`, which stands before them. */
export const providerSettings: {
  readonly [Name in Exclude<keyof ProviderSettings, 'oidcProvider'>]: Setting<
    ProviderSettings[Name]
  >;
} = {
  oidcAudienceClaim: {
    variable: 'OIDC_AUDIENCE_CLAIM',
    rule: oneOf('aud', 'client_id'),
    fallback: (above) => profileOf(above).audienceClaim,
    shown: shown(({ audienceClaim }) => audienceClaim),
    help: 'The claim that must name one of OIDC_AUDIENCE. With client_id a token must also have token_use access, as those of Amazon Cognito have.',
    chapter: 'Tokens',
  },
  oauthAddedScopes: {
    variable: 'OAUTH_ADDED_SCOPES',
    rule: scopes,
    fallback: (above) => profileOf(above).scopes,
    shown: shown(scopesOf),
    help: 'Scopes asked for beside those that the client names, in place of the default. OAUTH_MODE=broker only.',
    chapter: 'Log-in',
  },
  oauthAddedParameters: {
    variable: 'OAUTH_ADDED_PARAMETERS',
    rule: parameters,
    fallback: (above) => profileOf(above).parameters,
    shown: shown(parametersOf),
    help: 'Further parameters of the authorization request, in place of the default. OAUTH_MODE=broker only.',
    chapter: 'Log-in',
  },
  oauthResourceParameter: {
    variable: 'OAUTH_RESOURCE_PARAMETER',
    rule: oneOf('resource', 'audience', NONE),
    fallback: (above) => profileOf(above).resource,
    shown: shown(({ resource }) => resource),
    help: "Under which name the provider is told whom tokens are for (RFC 8707), in every request: the ones of OIDC_AUDIENCE that the client's resource names, else the first URI of OIDC_AUDIENCE, else BASE_URL/mcp. none tells it nothing. OAUTH_MODE=broker only.",
    chapter: 'Log-in',
  },
  oauthAccessToken: {
    variable: 'OAUTH_ACCESS_TOKEN',
    rule: oneOf('access_token', 'id_token'),
    fallback: (above) => profileOf(above).accessToken,
    shown: shown(({ accessToken }) => accessToken),
    help: "Which token of the provider's answer clients get as access token: id_token where access tokens are not JWTs. OAUTH_MODE=broker only.",
    chapter: 'Log-in',
  },
};

/** `OAUTH_CLIENT_AUTH`, unless it is set. */
export const defaultClientAuth = (above: Config): 'post' | 'basic' => profileOf(above).clientAuth;
export const shownClientAuth = shown(({ clientAuth }) => clientAuth);

/** Whether tokens name the client that they were made for, and not the gateway. */
export const namesTheClient = (config: Config): boolean =>
  config.oauthAccessToken === 'id_token' ||
  config.oidcAudienceClaim === 'client_id' ||
  profileOf(config).audience === 'client_id';

/** `OIDC_AUDIENCE`, unless it is set; empty when it cannot be known. */
export function defaultAudience(above: Config): readonly string[] {
  const { baseUrl, oauthClientId } = above;
  // The provider is asked for a token for the first of them (RFC 8707).
  if (!namesTheClient(above)) return [`${baseUrl}/mcp`, baseUrl, `${baseUrl}/`];
  return oauthClientId === undefined ? [] : [oauthClientId];
}

const CLIENT_NAMED = PROVIDERS.filter((name) => PROVIDER_PROFILES[name].audience === 'client_id');
export const shownAudience = `BASE_URL/mcp, BASE_URL, and BASE_URL with a slash (OAUTH_CLIENT_ID with ${CLIENT_NAMED.join(', ')}, with OAUTH_ACCESS_TOKEN=id_token and with OIDC_AUDIENCE_CLAIM=client_id)`;
