// Checks the provider's discovery document and key set, which are read as the gateway reads them.

import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { Provider } from '../../config/provider-profiles.ts';
import { GatewayError } from '../../errors/gateway-error.ts';
import {
  buildDiscoveryUrl,
  IssuerMismatch,
  type ProviderDocument,
} from '../../http/oauth-client/provider-metadata.ts';
import { algorithms } from '../../logins/auth/jwk.ts';

import { FetchError } from '../../platform/fetch-with-limits.ts';
import { isStringArray, type JsonObject } from '../../platform/json.ts';
import { describeCause } from '../../platform/log.ts';
import { quote } from '../../platform/text.ts';
import { defineCheck, failure, ok, unknown, warning } from './finding.ts';
import { describeNetworkFailure, type FailureKind, type Probe } from './instruments.ts';
import {
  defineDocumentCheck,
  defineProviderCheck,
  type ProviderAtHand,
  type SettingsAtHand,
} from './settings-at-hand.ts';
import type { Walk } from './walk.ts';

const DISCOVERY_CHECK = 'provider.discovery';

export const discoveryCheck = defineCheck({
  section: 'Identity provider',
  async run(settings: SettingsAtHand) {
    const { access, config, probe } = settings;
    if (access === undefined) return [];
    if (access.metadata.isFixed) return checkProviderReach(probe, access);
    const { issuer, jwksUrl } = access.provider;
    try {
      await access.metadata.get();
      return ok(
        DISCOVERY_CHECK,
        `The provider's discovery document can be read, and names ${issuer} as its issuer.`,
      );
    } catch (error) {
      // If the document is not needed, its absence is not a failure.
      const { tokenUrl, authorizationUrl } = config.oauth.endpoints;
      const isNeeded =
        jwksUrl === undefined || tokenUrl === undefined || authorizationUrl === undefined;
      const found = await explain(error, issuer, probe);
      return isNeeded ? found : { ...found, status: 'warning' };
    }
  },
});

/** Contacts a provider whose endpoints are known without a document. A refusal counts as a response. */
async function checkProviderReach(probe: Probe, { metadata }: ProviderAtHand) {
  const { issuer, userinfo_endpoint: url = issuer } = await metadata.get();
  try {
    await probe(url);
    return ok(
      DISCOVERY_CHECK,
      `${issuer} can be reached. Its endpoints are known: it needs no discovery document.`,
    );
  } catch (error) {
    if (!(error instanceof FetchError)) throw error;
    return explainNetwork(error, url, 'GITHUB_URL');
  }
}

/** Explains why the document of this issuer could not be used. */
async function explain(error: unknown, issuer: string, probe: Probe) {
  const url = buildDiscoveryUrl(issuer);
  if (error instanceof IssuerMismatch) {
    const foundIssuer = (await probe(url)).json?.issuer;
    const isSlash = String(foundIssuer).replace(/\/$/, '') === issuer.replace(/\/$/, '');
    return failure(
      'provider.issuer',
      `The provider calls itself ${quote(foundIssuer)}, and OIDC_ISSUER is ${quote(issuer)}.`,
      {
        why: `Issuers are compared character by character${isSlash ? ', and a slash at the end counts' : ''}: the gateway uses no document, and accepts no token, from a different issuer.`,
        setting: 'OIDC_ISSUER',
        remedy: `set OIDC_ISSUER=${String(foundIssuer)} if this is the right provider.`,
      },
    );
  }
  if (error instanceof FetchError) return explainNetwork(error, url, 'OIDC_ISSUER');
  return failure(
    DISCOVERY_CHECK,
    `The provider's discovery document cannot be used: ${describeCause(error)}.`,
    {
      setting: 'OIDC_ISSUER',
      remedy: `open ${url} in a browser: it must show a JSON document. A 404 means that the issuer's path (tenant, realm, letter case) is wrong.`,
    },
  );
}

const REMEDIES: Readonly<Record<FailureKind, string>> = {
  name: 'correct the host name. If this machine has no direct internet access, set HTTPS_PROXY=http://host:port to the outbound proxy; otherwise check its DNS.',
  refused: 'start the provider, or correct the host and port.',
  timeout:
    'check that the provider runs, and that a firewall lets this machine reach it. If internet access requires a proxy, set HTTPS_PROXY=http://host:port.',
  'certificate-expired': 'renew the certificate of the provider.',
  'certificate-name': 'use the host name in the certificate, if it is the name of the provider.',
  certificate:
    'put the certificate authority of the provider, or of the proxy that inspects TLS, into a file, and start the gateway with NODE_EXTRA_CA_CERTS=/path/to/ca.pem (in the environment, not in .env).',
  'no-tls': 'write http:// if the provider has no TLS (development only), or correct the port.',
  'tls-only': 'write https://, or correct the port.',
  proxy:
    'check HTTPS_PROXY and HTTP_PROXY (http://user:password@host:port), and which hosts the proxy allows. NO_PROXY lists hosts to reach directly.',
  other: 'check that the URL is that of the provider.',
};

function explainNetwork(error: unknown, url: string, setting: string) {
  const { kind, text } = describeNetworkFailure(error, url);
  return failure('provider.reachable', `The provider cannot be reached. ${text}`, {
    why: 'No user can log in, and a gateway that starts now cannot verify tokens.',
    setting: kind === 'proxy' ? 'HTTPS_PROXY' : setting,
    remedy: REMEDIES[kind],
  });
}

export const keySetCheck = defineProviderCheck('Identity provider', async (_settings, access) => {
  const url = access.provider.jwksUrl ?? (await access.metadata.get()).jwks_uri;
  if (url === undefined) return [];
  try {
    access.keySet.start();
    await access.keySet.waitForKeys();
    return ok('provider.key-set', "The provider's key set can be read, and has usable keys.");
  } catch (error) {
    const cause = error instanceof GatewayError ? error.cause : error;
    if (cause instanceof FetchError)
      return { ...explainNetwork(cause, url, 'OIDC_JWKS_URL'), check: 'provider.key-set' };
    return failure(
      'provider.key-set',
      `The provider's key set cannot be used: ${describeCause(cause)}.`,
      {
        setting: 'OIDC_JWKS_URL',
        remedy: `open ${url} in a browser: it must show a JSON document with keys. authentik needs a signing key for this.`,
      },
    );
  }
});

/** Compares the provider's capabilities in the discovery document with the gateway's requests. */
export const capabilitiesCheck = defineProviderCheck(
  'Identity provider',
  async (settings, access) => {
    if (access.metadata.isFixed) return [];
    const { json } = await settings.probe(buildDiscoveryUrl(access.provider.issuer));
    const { secret, authMethod } = settings.config.oauth.providerClient;
    const method = `client_secret_${authMethod}`;
    const otherMethod = authMethod === 'post' ? 'basic' : 'post';
    return [
      secret !== undefined &&
        lacks(json, 'token_endpoint_auth_methods_supported', method) &&
        warning(
          'provider.client-auth',
          `The provider does not list ${method} as a way to send the secret.`,
          {
            setting: 'OAUTH_CLIENT_AUTH',
            remedy: `set OAUTH_CLIENT_AUTH=${otherMethod}.`,
          },
        ),
      lacks(json, 'code_challenge_methods_supported', 'S256') &&
        warning(
          'provider.pkce',
          'The provider does not list PKCE with S256, which the gateway sends.',
          {
            remedy: 'use a provider, or a version of it, that supports PKCE (RFC 7636).',
          },
        ),
    ];
  },
);

/** A provider that does not list its values passes. */
function lacks(document: JsonObject | undefined, name: string, value: string) {
  const listed = document?.[name];
  return isStringArray(listed) && !listed.includes(value);
}

// Tokens issued by the gateway (§5.11): their requirements on the provider.

/** Evaluates logins by the discovery document. */
export const loginAbilitiesCheck = defineDocumentCheck((document, oauth, { access }) => {
  const refreshing = judgeRefreshTokens(document, oauth);
  if (access?.metadata.isFixed) return [refreshing];
  const { scopes_supported: scopes, id_token_signing_alg_values_supported: listed } = document;
  const revocationUrl = oauth.endpoints.revocationUrl ?? document.revocation_endpoint;
  return [
    // OpenID Connect Core §3.1.2.1. However, a provider may omit the scope from its list (Discovery §3).
    scopes?.includes('openid') === false &&
      warning('provider.openid', 'The provider does not list the scope openid.', {
        why: 'Without it there is no ID token, which identifies the user: every login would fail.',
        setting: 'OIDC_ISSUER',
        remedy:
          'check that it is the issuer of an OpenID provider, and not of an authorization server for APIs only; or allow the scope openid there.',
      }),
    listed?.some((name) => algorithms.has(name)) === false &&
      failure('provider.id-token', `The provider signs ID tokens with ${listed.join(', ')} only.`, {
        why: 'The gateway verifies them with the public keys of the provider, and does not support such an algorithm.',
        setting: 'OIDC_ISSUER',
        remedy: `have the provider sign ID tokens with a key pair, for example RS256 (${[...algorithms.keys()].join(', ')}). In authentik, choose a signing key.`,
      }),
    refreshing,
    ok(
      'provider.revocation',
      revocationUrl === undefined
        ? 'The provider has no revocation endpoint: logins still end here, but the refresh token at the provider stays valid until it expires.'
        : "When a login ends here, the provider's refresh token is revoked, too.",
    ),
  ];
});

const REFRESH_CHECK = 'provider.offline-access';

/** Providers that issue refresh tokens without the scope `offline_access`. */
const NEED_NO_SCOPE: ReadonlySet<Provider> = new Set(['keycloak', 'google', 'cognito', 'gitlab']);

function judgeRefreshTokens(
  { scopes_supported: scopes = [] }: ProviderDocument,
  { provider, addedScopes, tokens }: BrokerConfig,
) {
  const isAsked = [...scopes, ...addedScopes].includes('offline_access');
  if (isAsked || NEED_NO_SCOPE.has(provider.name)) {
    const how = isAsked
      ? 'The gateway requests offline_access, and gets refresh tokens'
      : 'The provider issues refresh tokens without a scope for that';
    return ok(
      REFRESH_CHECK,
      `${how}: the gateway checks every ${tokens.renewalSeconds} s whether a user may still log in.`,
    );
  }
  if (provider.quirks.accessTokensLast)
    return ok(
      REFRESH_CHECK,
      `The provider's access tokens are valid until they are revoked, unless it issues refresh tokens: with either, the gateway checks every ${tokens.renewalSeconds} s whether a user may still log in.`,
    );
  return warning(
    REFRESH_CHECK,
    'The provider does not list the scope offline_access, so it may issue no refresh token to the gateway.',
    {
      why: `The gateway could not check whether a user may still log in: each login would end after OAUTH_GRANT_UNRENEWED_SECONDS (${tokens.grantUnrenewedSeconds} s), and the user would have to log in again.`,
      setting: 'OAUTH_ADDED_SCOPES, OAUTH_GRANT_UNRENEWED_SECONDS',
      remedy:
        'allow refresh tokens for the client at the provider. If it supports the scope without listing it, set OAUTH_ADDED_SCOPES=offline_access.',
    },
  );
}

// §13.4, §13.5: whether the provider notifies the gateway of logouts, and whether users can log out there.

/** Evaluates logout by the discovery document. Only the provider knows whether an address is registered. */
export const providerLogoutCheck = defineDocumentCheck((document, oauth, { config }) => {
  const { baseUrl } = config.server;
  const { end_session_endpoint: url } = document;
  return [
    judgeBackchannel(document, baseUrl, oauth.tokens.backchannelEnds),
    ok(
      'provider.end-session',
      url === undefined
        ? 'The provider has no page to log out (end_session_endpoint): /account only logs out of the gateway.'
        : `Users who log out at /account can log out at ${new URL(url).host}, too. Register ${baseUrl}/account as post-logout redirect URI of the gateway's client, so that they return here.`,
    ),
  ];
});

const BACKCHANNEL_CHECK = 'provider.backchannel-logout';

function judgeBackchannel(document: ProviderDocument, baseUrl: string, ends: 'session' | 'all') {
  if (document.backchannel_logout_supported !== true)
    return ok(
      BACKCHANNEL_CHECK,
      'The provider does not say that it can notify the gateway of logouts (backchannel_logout_supported). Users who log out there stay logged in here, unless the provider then refuses the next refresh.',
    );
  const namesSessions = document.backchannel_logout_session_supported === true;
  const what =
    ends === 'session' && namesSessions
      ? "the user's logins from that session end; with OAUTH_BACKCHANNEL_ENDS=all, all of the user's logins"
      : 'all logins of the user end';
  const unnamed = namesSessions
    ? ''
    : ' It does not say that it names sessions (backchannel_logout_session_supported).';
  return ok(
    BACKCHANNEL_CHECK,
    `The provider can notify the gateway of logouts. Register ${baseUrl}/oauth/backchannel-logout as back-channel logout URL of the gateway's client.${unnamed}`,
    {
      why: `When a user logs out there, ${what}.`,
    },
  );
}

// Clocks have to agree, because tokens have a validity period.

/** Tokens live for minutes: with clocks this far apart, none is ever accepted. */
const HOPELESS_SECONDS = 300;

const CLOCK_CHECK = 'clock';

/** `offset`: seconds by which the provider's clock is ahead of the other; undefined if unknown. */
function judgeClock(
  offset: number | undefined,
  toleranceSeconds: number,
  other: 'this machine' | 'the gateway',
) {
  if (offset === undefined)
    return unknown(
      CLOCK_CHECK,
      "whether the provider's clock is right: its responses have no Date header.",
    );
  const seconds = Math.abs(Math.round(offset));
  if (Math.abs(offset) <= toleranceSeconds)
    return ok(CLOCK_CHECK, `The clocks of the provider and of ${other} agree.`);
  return (seconds >= HOPELESS_SECONDS ? failure : warning)(
    CLOCK_CHECK,
    `The provider's clock is ${seconds} s ${offset > 0 ? 'ahead of' : 'behind'} that of ${other}.`,
    {
      why: `Tokens would count as ${offset > 0 ? 'not valid yet' : 'expired too early'}; ${toleranceSeconds} s are allowed.`,
      setting: 'OIDC_CLOCK_TOLERANCE_SECONDS',
      remedy: 'set the clock of the machine that is wrong (NTP). The setting allows 60 s at most.',
    },
  );
}

/** Compares clocks by the Date header of the provider's responses. */
export const clockCheck = defineProviderCheck(
  'Identity provider',
  async ({ config, clocks }, { provider }) => {
    const { auth } = config;
    if (!auth.required) return [];
    const { issuer, jwksUrl } = provider;
    const offset = clocks.readOffset(issuer) ?? clocks.readOffset(jwksUrl ?? issuer);
    return judgeClock(offset, auth.clockToleranceSeconds, 'this machine');
  },
);

/** The default of OIDC_CLOCK_TOLERANCE_SECONDS: the gateway's own value is not visible from outside. */
const TOLERANCE_SECONDS = 5;

/** Compares the provider's clock with the gateway's, both observed from here. */
export const walkClockCheck = defineCheck({
  section: 'Login',
  async run({ baseUrl, clocks, logIn }: Walk) {
    const login = await logIn();
    if (login?.kind !== 'at-provider') return [];
    const provider = clocks.readOffset(login.url);
    const gateway = clocks.readOffset(baseUrl);
    const offset = provider === undefined || gateway === undefined ? undefined : provider - gateway;
    return judgeClock(offset, TOLERANCE_SECONDS, 'the gateway');
  },
});
