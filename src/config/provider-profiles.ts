// Profiles of OpenID providers, based on their documentation. A variable can override each member; docs/provider-*.md describe the
// configuration at the provider.

export interface ProviderProfile {
  /** How the provider identifies the user. */
  readonly login: ProviderLogin;
  /** Scopes to add to those that a client requests. */
  readonly scopes: readonly string[];
  /** Parameters to add to the authorization request. */
  readonly parameters: readonly Parameter[];
  readonly clientAuth: 'post' | 'basic';
  /** The claim that names the audience of a token. */
  readonly audienceClaim: 'aud' | 'client_id';
  /** The default audience of the provider's tokens. */
  readonly audience: 'gateway' | 'client_id';
  /** The required form of the issuer, and the reason for it. */
  readonly issuer?: Requirement;
  /** A less strict form of the issuer, for logins in which only the provider itself reads its access tokens. */
  readonly loginIssuer?: Requirement;
  /** The reason why clients can only get tokens that the gateway issued. */
  readonly ownTokensOnly?: string;
  /** E-mail addresses that the provider is authoritative for; by default all addresses with email_verified. */
  readonly emailAuthority?: EmailAuthority;
  readonly quirks: ProviderQuirks;
}

/** Deviations of the provider from the RFCs, which no variable sets. */
export interface ProviderQuirks {
  /** Set if only the provider can read its access tokens: the gateway then accepts ID tokens instead. */
  readonly opaqueAccessTokens?: true;
  /** Claims that mark an ID token at other providers, but that this provider's access tokens have as well. */
  readonly accessTokenHashes?: readonly string[];
  /** Set if a refresh without `scope` returns a token for something else, or none. */
  readonly refreshNeedsScope?: true;
  /** Set if revoking one login revokes all of the user's logins with the same client. */
  readonly revokesAllOfUser?: true;
  /** The error that the provider returns instead of `invalid_grant` for an expired or used refresh token. */
  readonly spentRefreshTokenError?: string;
  /** Maps the provider's proprietary error codes to those of RFC 6749. */
  readonly errorCodes?: Readonly<Record<string, string>>;
  /** Set if an access token without an expiry and without a refresh token is valid until revoked. */
  readonly accessTokensLast?: true;
  /** Set if the provider ignores the scopes that clients request, and only knows its own. */
  readonly ownScopesOnly?: true;
}

/** Users are identified by an ID token of OpenID Connect, or through a proprietary API. */
export type ProviderLogin = 'openid' | 'github';

export type Parameter = readonly [name: string, value: string];

export interface EmailAuthority {
  /** Suffixes of addresses in the provider's own domains. */
  readonly ownDomains: readonly string[];
  /** The claim that marks an address of an organization that the provider manages; email_verified is required as well. */
  readonly organizationClaim: string;
}

interface Requirement {
  readonly form: RegExp;
  readonly why: string;
}

/** A profile without additions or renamed parameters. */
const GENERIC: ProviderProfile = {
  login: 'openid',
  scopes: [],
  parameters: [],
  clientAuth: 'post',
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
  'github',
  'gitlab',
  'slack',
] as const;
export type Provider = (typeof PROVIDERS)[number];

export const PROVIDER_PROFILES: { readonly [Name in Provider]: ProviderProfile } = {
  generic: GENERIC,

  // https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference (aud, iss)
  // https://learn.microsoft.com/entra/identity-platform/scopes-oidc (offline_access, Graph)
  // https://github.com/AzureAD/microsoft-authentication-library-for-js/issues/5198 (refresh)
  entra: {
    ...GENERIC,
    scopes: ['offline_access'],
    audience: 'client_id',
    issuer: {
      form: /^https:\/\/(login\.microsoftonline\.(com|us)|login\.partner\.microsoftonline\.cn|[a-z0-9-]+\.ciamlogin\.com)\/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\/v2\.0$/,
      why: 'it must be https://login.microsoftonline.com/<tenant id>/v2.0 with the ID of one tenant in lower case: no token names common, organizations or a domain, and version 1 tokens have a different issuer',
    },
    quirks: { refreshNeedsScope: true },
  },

  // https://developer.okta.com/docs/concepts/auth-servers/ (org and custom servers)
  // https://developer.okta.com/docs/guides/refresh-tokens/main/ (offline_access, Basic)
  okta: {
    ...GENERIC,
    scopes: ['offline_access'],
    clientAuth: 'basic',
    issuer: {
      form: /^https:\/\/[^/?]+\/oauth2\/(?!v1$)[^/?]+$/,
      why: 'it must be a custom authorization server, https://<org>.okta.com/oauth2/<id> (for example /oauth2/default): only Okta can verify tokens of the org authorization server',
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
    issuer: {
      form: /^https:\/\/[^/?]+\/$/,
      why: 'it must be https://<tenant>.auth0.com/, or your custom domain, and end with a slash, like the iss of the tokens',
    },
    // https://auth0.com/docs/secure/tokens/refresh-tokens/revoke-refresh-tokens (a setting of the tenant, on in old ones)
    quirks: { revokesAllOfUser: true },
  },

  // https://www.keycloak.org/securing-apps/mcp-authz-server (audience by a mapper, not by resource)
  // https://www.keycloak.org/docs/latest/server_admin/#_offline-access (refresh without the scope)
  keycloak: {
    ...GENERIC,
    issuer: {
      form: /^https?:\/\/[^?]+\/realms\/[^/?]+$/,
      why: 'it must be that of a realm, https://<host>/realms/<realm>, without a slash at the end',
    },
    // https://github.com/keycloak/keycloak/blob/main/services/src/main/java/org/keycloak/protocol/oidc/endpoints/TokenRevocationEndpoint.java
    // (revoking a refresh token ends all sessions of its user with the same client)
    quirks: { revokesAllOfUser: true },
  },

  // https://developers.google.com/identity/openid-connect/reference (issuer, access_type, prompt)
  // https://cloud.google.com/docs/authentication/token-types (access tokens are opaque)
  // https://developers.google.com/identity/gsi/web/guides/verify-google-id-token (for which e-mail addresses it
  // is authoritative: a Google account may have an address of another provider, and keep it)
  google: {
    ...GENERIC,
    // Without prompt=consent a user's second client gets no refresh token.
    parameters: [
      ['access_type', 'offline'],
      ['prompt', 'consent'],
    ],
    audience: 'client_id',
    issuer: {
      form: /^https:\/\/accounts\.google\.com$/,
      why: 'it must be https://accounts.google.com, without a slash at the end',
    },
    // https://developers.google.com/identity/protocols/oauth2/web-server#tokenrevoke
    quirks: { opaqueAccessTokens: true, revokesAllOfUser: true },
    emailAuthority: { ownDomains: ['@gmail.com'], organizationClaim: 'hd' },
  },

  // https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html
  // https://docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_IssuerConfigurationType.html
  // https://docs.aws.amazon.com/cognito/latest/developerguide/token-endpoint.html (always refreshed)
  cognito: {
    ...GENERIC,
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
    audience: 'client_id',
    issuer: {
      form: /^https?:\/\/[^?]+\/application\/o\/[^/?]+\/$/,
      why: 'it must be that of the application, https://<host>/application/o/<slug>/, with the slash at the end',
    },
  },

  // https://dexidp.io/docs/configuration/custom-scopes-claims-clients/ (aud, offline_access, groups)
  // https://github.com/dexidp/dex/blob/master/server/oauth2.go (access tokens are created like ID tokens, with at_hash) It
  // answers a used refresh token with invalid_request, as an experiment shows.
  dex: {
    ...GENERIC,
    scopes: ['offline_access', 'groups'],
    audience: 'client_id',
    quirks: { accessTokenHashes: ['at_hash'], spentRefreshTokenError: 'invalid_request' },
  },

  // https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps (PKCE; tokens without expiry)
  // https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens
  // (tokens of a GitHub App expire, unless it opts out)
  // https://docs.github.com/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps (GitHub Apps have permissions instead)
  // https://docs.github.com/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors
  // (errors, with status 200)
  // https://docs.github.com/apps/github-authentication-discovery-endpoints (there is OpenID Connect in name only)
  github: {
    ...GENERIC,
    login: 'github',
    scopes: ['read:user', 'user:email', 'read:org'],
    ownTokensOnly: 'its access tokens are opaque, and it has no ID tokens',
    quirks: {
      errorCodes: {
        bad_verification_code: 'invalid_grant',
        bad_refresh_token: 'invalid_grant',
        incorrect_client_credentials: 'invalid_client',
        unverified_user_email: 'access_denied',
      },
      accessTokensLast: true,
      ownScopesOnly: true,
    },
  },

  // https://docs.gitlab.com/integration/openid_connect_provider/ (groups in userinfo, groups_direct in the ID token)
  // https://docs.gitlab.com/api/oauth2/ (PKCE; access tokens for two hours, always with a refresh token, which rotates)
  gitlab: {
    ...GENERIC,
    ownTokensOnly: 'its access tokens are opaque, and its ID tokens are valid for two minutes',
    issuer: {
      form: /^https?:\/\/[^?]*[^?/]$/,
      why: 'it must be https://gitlab.com, or the address of your own GitLab, without a slash at the end',
    },
  },

  // https://docs.slack.dev/authentication/sign-in-with-slack/ (discovery, claims, its three scopes)
  // https://docs.slack.dev/reference/methods/openid.connect.token (errors, with "ok": false and status 200)
  // https://docs.slack.dev/authentication/using-token-rotation/ (without it tokens do not expire)
  slack: {
    ...GENERIC,
    scopes: ['openid', 'profile', 'email'],
    ownTokensOnly: 'its access tokens are opaque, and its ID tokens are valid for five minutes',
    issuer: {
      form: /^https:\/\/slack\.com$/,
      why: 'it must be https://slack.com, without a slash at the end, whatever the address of your workspace',
    },
    quirks: {
      errorCodes: {
        invalid_code: 'invalid_grant',
        code_already_used: 'invalid_grant',
        code_expired: 'invalid_grant',
        invalid_refresh_token: 'invalid_grant',
        token_expired: 'invalid_grant',
        token_revoked: 'invalid_grant',
        account_inactive: 'invalid_grant',
        invalid_auth: 'invalid_grant',
        bad_client_secret: 'invalid_client',
        invalid_client_id: 'invalid_client',
        ratelimited: 'temporarily_unavailable',
        service_unavailable: 'temporarily_unavailable',
        request_timeout: 'temporarily_unavailable',
        fatal_error: 'server_error',
        internal_error: 'server_error',
      },
      accessTokensLast: true,
      ownScopesOnly: true,
    },
  },
};
