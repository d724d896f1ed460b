// The OpenID provider: whose tokens are accepted, and the client by which people log in at it.
// OIDC_PROVIDER gives defaults to the settings below it.
import {
  type AccessToken,
  type AudienceClaim,
  PROVIDER_PROFILES,
  PROVIDERS,
  type Provider,
  type ProviderProfile,
  type ProviderQuirks,
} from '../provider-profiles.ts';
import { anyText, httpUrl, integer, list, oneOf, type Rule } from '../rules.ts';
import { derived, fixed, none, type Read, setting } from '../setting.ts';
import { serverSettings } from './server.ts';

export interface ProviderConfig {
  readonly name: Provider;
  /** As the `iss` of its tokens says it. */
  readonly issuer: string;
  /** Its key set; undefined where the discovery document names it. */
  readonly jwksUrl: string | undefined;
  /** What tokens must name, one of them. */
  readonly audience: readonly string[];
  /** The claim that names it. */
  readonly audienceClaim: AudienceClaim;
  /** The token of the provider's answer that a client gets as access token. */
  readonly accessToken: AccessToken;
  readonly quirks: ProviderQuirks;
}

/** The client registered at the provider, which stands in for those registered here. */
export interface ProviderClientConfig {
  readonly id: string | undefined;
  readonly secret: string | undefined;
  /** How the secret is sent: in the form, or as HTTP Basic (RFC 6749 §2.3.1). */
  readonly authMethod: 'post' | 'basic';
}

type Select = (profile: ProviderProfile) => string;

/** The default of the generic profile, then whose differs: it cannot go stale. */
export function describeProfiles(select: Select): string {
  const usual = select(PROVIDER_PROFILES.generic);
  const values = new Set(PROVIDERS.map((name) => select(PROVIDER_PROFILES[name])));
  const others = [...values].filter((value) => value !== usual);
  const exceptions = others.map((value) => {
    const names = PROVIDERS.filter((name) => select(PROVIDER_PROFILES[name]) === value);
    return `${value} with ${names.join(', ')}`;
  });
  return `${usual} (${exceptions.join('; ')})`;
}

/** A default that the profile of the provider has, and how it is shown. */
export const ofProfile = <T>(
  select: (profile: ProviderProfile) => T,
  show: (value: T) => string = String,
) =>
  derived(
    describeProfiles((profile) => show(select(profile))),
    (read) => select(readProfile(read)),
  );

export const readProfile = (read: Read): ProviderProfile => PROVIDER_PROFILES[read(provider)];

const provider = setting({
  variable: 'OIDC_PROVIDER',
  rule: oneOf(...PROVIDERS),
  default: fixed('generic'),
  help: 'Sets what this provider needs: the defaults of OAUTH_ADDED_SCOPES, OAUTH_ADDED_PARAMETERS, OAUTH_RESOURCE_PARAMETER, OAUTH_ACCESS_TOKEN, OAUTH_CLIENT_AUTH, OIDC_AUDIENCE and OIDC_AUDIENCE_CLAIM, and the form that OIDC_ISSUER must have.',
});

const audienceClaim = setting<AudienceClaim>({
  variable: 'OIDC_AUDIENCE_CLAIM',
  rule: oneOf('aud', 'client_id'),
  default: ofProfile((profile) => profile.audienceClaim),
  help: 'The claim that must name one of OIDC_AUDIENCE. With client_id a token must also have token_use access, as those of Amazon Cognito have.',
});

const accessToken = setting<AccessToken>({
  variable: 'OAUTH_ACCESS_TOKEN',
  rule: oneOf('access_token', 'id_token'),
  default: ofProfile((profile) => profile.accessToken),
  help: "Which token of the provider's answer clients get as access token: id_token where access tokens are not JWTs. OAUTH_MODE=broker only.",
});

const clientIdRule: Rule<string> = {
  parse: (text) => (text.startsWith('svc-') ? undefined : text),
  allowed: 'a client id that does not begin with svc-, the prefix of dynamic clients',
};

const clientId = setting({
  variable: 'OAUTH_CLIENT_ID',
  rule: clientIdRule,
  default: none,
  help: 'The client registered at the provider; dynamic (svc-) clients ride on it.',
});

const CLIENT_NAMED = PROVIDERS.filter((name) => PROVIDER_PROFILES[name].audience === 'client_id');

/** Whether tokens name the client that they were made for, and not the gateway. */
const namesTheClient = (read: Read): boolean =>
  read(accessToken) === 'id_token' ||
  read(audienceClaim) === 'client_id' ||
  readProfile(read).audience === 'client_id';

/** Empty where it cannot be known. */
function defaultAudience(read: Read): readonly string[] {
  const baseUrl = read(serverSettings.baseUrl);
  const id = read(clientId);
  // The provider is asked for a token for the first of them (RFC 8707).
  if (!namesTheClient(read)) return [`${baseUrl}/mcp`, baseUrl, `${baseUrl}/`];
  return id === undefined ? [] : [id];
}

export const providerSettings = {
  provider,
  issuer: setting({
    variable: 'OIDC_ISSUER',
    rule: httpUrl,
    default: none,
    help: "The provider's issuer, exactly as in the iss claim of its tokens. Required while AUTH_REQUIRED=true.",
  }),
  jwksUrl: setting<string | undefined>({
    variable: 'OIDC_JWKS_URL',
    rule: httpUrl,
    default: derived("found by the issuer's discovery document", () => undefined),
    help: "URL of the provider's key set.",
  }),
  clockToleranceSeconds: setting({
    variable: 'OIDC_CLOCK_TOLERANCE_SECONDS',
    rule: integer(0, 60),
    default: fixed(5),
    help: "Seconds by which the provider's clock may differ (exp and nbf).",
  }),
  audienceClaim,
  audience: setting({
    variable: 'OIDC_AUDIENCE',
    rule: list(anyText, 'a comma list of URLs or names'),
    default: derived(
      `BASE_URL/mcp, BASE_URL, and BASE_URL with a slash (OAUTH_CLIENT_ID with ${CLIENT_NAMED.join(', ')}, with OAUTH_ACCESS_TOKEN=id_token and with OIDC_AUDIENCE_CLAIM=client_id)`,
      defaultAudience,
    ),
    help: 'Comma list of audiences; a token is accepted when its aud (OIDC_AUDIENCE_CLAIM) is or contains one of them.',
  }),
  accessToken,
  clientId,
  clientSecret: setting({
    variable: 'OAUTH_CLIENT_SECRET',
    rule: anyText,
    default: none,
    help: 'Its secret, sent to the provider only in the name of dynamic clients.',
    secret: true,
  }),
  clientAuth: setting<'post' | 'basic'>({
    variable: 'OAUTH_CLIENT_AUTH',
    rule: oneOf('post', 'basic'),
    default: ofProfile((profile) => profile.clientAuth),
    help: 'How the secret is sent: post (client_secret_post) or basic (client_secret_basic).',
  }),
};

/** Undefined without `OIDC_ISSUER`. */
export function readProviderConfig(read: Read): ProviderConfig | undefined {
  const issuer = read(providerSettings.issuer);
  if (issuer === undefined) return undefined;
  return {
    name: read(provider),
    issuer,
    jwksUrl: read(providerSettings.jwksUrl),
    audience: read(providerSettings.audience),
    audienceClaim: read(audienceClaim),
    accessToken: read(accessToken),
    quirks: readProfile(read).quirks,
  };
}

export const readProviderClient = (read: Read): ProviderClientConfig => ({
  id: read(clientId),
  secret: read(providerSettings.clientSecret),
  authMethod: read(providerSettings.clientAuth),
});
