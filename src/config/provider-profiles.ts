// What each provider needs, as its documentation says. Every member can be told by a variable
// instead; docs/provider-*.md say what to click.

export interface ProviderProfile {
  /** Added to the scopes that a client asks for. */
  readonly scopes: readonly string[];
  /** Added to the authorization request. */
  readonly parameters: readonly Parameter[];
  /** Under which name the client's `resource` (RFC 8707) is sent on. */
  readonly resource: 'resource' | 'audience' | 'none';
  readonly clientAuth: 'post' | 'basic';
  /** The token of the provider's answer that the client gets as access token. */
  readonly accessToken: AccessToken;
  /** The claim that says whom a token is meant for. */
  readonly audienceClaim: 'aud' | 'client_id';
  /** What stands there unless the provider is told otherwise. */
  readonly audience: 'gateway' | 'client_id';
  /** The form of the issuer, and why nothing else can work. */
  readonly issuer?: Requirement;
  /** The same where nobody but the provider has to read its access tokens, if that allows more. */
  readonly loginIssuer?: Requirement;
  /** A scope without which its access tokens are of no use here. */
  readonly neededScope?: Requirement;
  /** Its access tokens can be read by nobody else. */
  readonly opaque?: true;
  /** Whose e-mail addresses it vouches for; where it is not said, for all with email_verified. */
  readonly emailAuthority?: EmailAuthority;
  readonly quirks: ProviderQuirks;
}

/** Where the provider differs from the RFCs; no variable sets these. */
export interface ProviderQuirks {
  /** Claims of ID tokens that its access tokens have as well. */
  readonly accessTokenHashes?: readonly string[];
  /** A refresh without `scope` gets a token for something else, or none. */
  readonly refreshNeedsScope?: true;
  /** The end of one login there is the end of all that its user has by the same client. */
  readonly revokesAllOfUser?: true;
  /** What it answers in place of `invalid_grant` when a refresh token is good no more. */
  readonly spentRefreshTokenError?: string;
}

export type Parameter = readonly [name: string, value: string];
export type AccessToken = 'access_token' | 'id_token';

export interface EmailAuthority {
  /** Ends of the addresses that are its own. */
  readonly ownDomains: readonly string[];
  /** The claim that it adds where the address is of an organization that it manages; email_verified is needed, too. */
  readonly organizationClaim: string;
}

interface Requirement {
  readonly form: RegExp;
  readonly why: string;
}

/** Nothing is added, nothing renamed. */
const GENERIC: ProviderProfile = {
  scopes: [],
  parameters: [],
  resource: 'resource',
  clientAuth: 'post',
  accessToken: 'access_token',
  audienceClaim: 'aud',
  audience: 'gateway',
  quirks: {},
};

export const PROVIDERS = [
  'generic',
  'entra',
  'okta',
  'auth0',
  'keycloak',
  'google',
  'cognito',
  'authentik',
  'dex',
] as const;
export type Provider = (typeof PROVIDERS)[number];

export const PROVIDER_PROFILES: { readonly [Name in Provider]: ProviderProfile } = {
  generic: GENERIC,

  // https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference (aud, iss)
  // https://learn.microsoft.com/entra/identity-platform/scopes-oidc (offline_access, Graph)
  // https://github.com/punkpeye/mcp-remote/issues/217 (resource: AADSTS9010010)
  // https://github.com/AzureAD/microsoft-authentication-library-for-js/issues/5198 (refresh)
  entra: {
    ...GENERIC,
    scopes: ['offline_access'],
    resource: 'none',
    audience: 'client_id',
    issuer: {
      form: /^https:\/\/(login\.microsoftonline\.(com|us)|login\.partner\.microsoftonline\.cn|[a-z0-9-]+\.ciamlogin\.com)\/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\/v2\.0$/,
      why: 'it must be https://login.microsoftonline.com/<tenant id>/v2.0 with the id of one tenant in lower case: no token names common, organizations or a domain, and those of version 1 have another issuer',
    },
    neededScope: {
      form: /\//,
      why: 'it must name a scope of your API, such as "offline_access api://<application id>/<scope>": without one Entra makes tokens for Microsoft Graph, which nobody else can check',
    },
    quirks: { refreshNeedsScope: true },
  },

  // https://developer.okta.com/docs/concepts/auth-servers/ (org and custom servers)
  // https://developer.okta.com/docs/guides/refresh-tokens/main/ (offline_access, Basic)
  okta: {
    ...GENERIC,
    scopes: ['offline_access'],
    resource: 'none',
    clientAuth: 'basic',
    issuer: {
      form: /^https:\/\/[^/?]+\/oauth2\/(?!v1$)[^/?]+$/,
      why: 'it must be a custom authorization server, https://<org>.okta.com/oauth2/<id> (for example /oauth2/default): tokens of the org authorization server can be checked by Okta only',
    },
    loginIssuer: {
      form: /^https:\/\/[^/?]+(\/oauth2\/(?!v1$)[^/?]+)?$/,
      why: 'it must be https://<org>.okta.com, or a custom authorization server, https://<org>.okta.com/oauth2/<id>, without a slash at the end',
    },
  },

  // https://auth0.com/docs/secure/tokens/access-tokens/get-access-tokens (audience, opaque tokens)
  // https://auth0.com/docs/secure/tokens/refresh-tokens/get-refresh-tokens (offline_access)
  auth0: {
    ...GENERIC,
    scopes: ['offline_access'],
    resource: 'audience',
    issuer: {
      form: /^https:\/\/[^/?]+\/$/,
      why: 'it must be https://<tenant>.auth0.com/, or your custom domain, and end with its slash: the iss of the tokens does',
    },
  },

  // https://www.keycloak.org/securing-apps/mcp-authz-server (audience by a mapper, not by resource)
  // https://www.keycloak.org/docs/latest/server_admin/#_offline-access (refresh without the scope)
  keycloak: {
    ...GENERIC,
    resource: 'none',
    issuer: {
      form: /^https?:\/\/[^?]+\/realms\/[^/?]+$/,
      why: 'it must be that of a realm, https://<host>/realms/<realm>, without a slash at the end',
    },
  },

  // https://developers.google.com/identity/openid-connect/reference (issuer, access_type, prompt)
  // https://cloud.google.com/docs/authentication/token-types (access tokens are opaque)
  // https://developers.google.com/identity/gsi/web/guides/verify-google-id-token (for which e-mail addresses it
  // is authoritative: anybody can have an account by an address of another provider, and keep it)
  google: {
    ...GENERIC,
    // Without prompt=consent a user's second client gets no refresh token.
    parameters: [
      ['access_type', 'offline'],
      ['prompt', 'consent'],
    ],
    resource: 'none',
    accessToken: 'id_token',
    audience: 'client_id',
    issuer: {
      form: /^https:\/\/accounts\.google\.com$/,
      why: 'it must be https://accounts.google.com, without a slash at the end',
    },
    opaque: true,
    // https://developers.google.com/identity/protocols/oauth2/web-server#tokenrevoke
    quirks: { revokesAllOfUser: true },
    emailAuthority: { ownDomains: ['@gmail.com'], organizationClaim: 'hd' },
  },

  // https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html
  // https://docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_IssuerConfigurationType.html
  // https://docs.aws.amazon.com/cognito/latest/developerguide/token-endpoint.html (always refreshed)
  // https://github.com/PrefectHQ/fastmcp/pull/2149 (resource without a resource server)
  cognito: {
    ...GENERIC,
    resource: 'none',
    audienceClaim: 'client_id',
    audience: 'client_id',
    issuer: {
      form: /^https:\/\/(issuer-)?cognito-idp\.[a-z0-9-]+\.amazonaws\.com(\.cn)?\/[\w-]+_[0-9A-Za-z]+$/,
      why: 'it must be that of the user pool, https://cognito-idp.<region>.amazonaws.com/<pool id>, not the domain of the login page',
    },
  },

  // https://docs.goauthentik.io/add-secure-apps/providers/oauth2/ (issuer, offline_access, keys)
  // https://github.com/goauthentik/authentik/blob/main/authentik/providers/oauth2/id_token.py (aud)
  authentik: {
    ...GENERIC,
    scopes: ['offline_access'],
    resource: 'none',
    audience: 'client_id',
    issuer: {
      form: /^https?:\/\/[^?]+\/application\/o\/[^/?]+\/$/,
      why: 'it must be that of the application, https://<host>/application/o/<slug>/, with the slash at the end',
    },
  },

  // https://dexidp.io/docs/configuration/custom-scopes-claims-clients/ (aud, offline_access, groups)
  // https://github.com/dexidp/dex/blob/master/server/oauth2.go (access tokens are made as ID tokens
  // are, with at_hash; resource is not looked at)
  // A refresh token that was used before is answered with invalid_request, as trying it shows.
  dex: {
    ...GENERIC,
    scopes: ['offline_access', 'groups'],
    resource: 'none',
    audience: 'client_id',
    quirks: { accessTokenHashes: ['at_hash'], spentRefreshTokenError: 'invalid_request' },
  },
};
