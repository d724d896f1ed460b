// §5.2: fetches and caches the provider's discovery document (OpenID Connect Discovery §4), and finds its endpoints.

import type { OAuthConfig } from '../../config/groups/oauth.ts';
import type { ProviderConfig } from '../../config/groups/provider.ts';
import type { ProviderLogin } from '../../config/provider-profiles.ts';
import { fail } from '../../errors/gateway-error.ts';
import { type Fetch, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { isStringArray, parseObject } from '../../platform/json.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import { quote } from '../../platform/text.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** The members of the discovery document that the service uses. */
export interface ProviderDocument {
  readonly issuer: string;
  /** Undefined for a provider without signing keys. */
  readonly jwks_uri?: string;
  readonly id_token_signing_alg_values_supported?: readonly string[];
  readonly authorization_endpoint?: string;
  readonly token_endpoint?: string;
  readonly revocation_endpoint?: string;
  /** OpenID Connect Core §5.3. */
  readonly userinfo_endpoint?: string;
  /** OpenID Connect RP-Initiated Logout §2.1. */
  readonly end_session_endpoint?: string;
  /** OpenID Connect Back-Channel Logout §2.1. */
  readonly backchannel_logout_supported?: boolean;
  readonly backchannel_logout_session_supported?: boolean;
  readonly scopes_supported?: readonly string[];
  /** RFC 9207 §2.3. */
  readonly authorization_response_iss_parameter_supported?: boolean;
}

export interface ProviderMetadata {
  /** `OIDC_ISSUER`, the required issuer of tokens. */
  readonly issuer: string;
  /** RFC 9207: the provider's name for itself in redirects, if it differs. */
  readonly redirectIssuer?: string;
  /** True if the endpoints are known without a document. Such a provider has no signatures and no key set. */
  readonly isFixed?: true;
  /**
   * Returns the document. Single flight, cached for five minutes, and served stale while the provider is down. A document from
   * a different issuer is not used.
   *
   * @throws Error if it was never fetched and cannot be fetched now; `IssuerMismatch` if the document is from a different issuer.
   */
  get(): Promise<ProviderDocument>;
}

/** For the log. */
export interface IssuerSetting {
  readonly variable: string;
  /** The settings that can replace it. */
  readonly remedy: string;
  /** Advice about a document from a different issuer. */
  readonly advice: string;
}

const OIDC_ISSUER: IssuerSetting = {
  variable: 'OIDC_ISSUER',
  remedy: 'OIDC_ISSUER, or OIDC_JWKS_URL',
  advice:
    'If this is your provider, set OIDC_ISSUER to exactly the issuer in it, which is also the iss of its tokens. If its tokens have your OIDC_ISSUER as iss, set OIDC_JWKS_URL, and in broker mode OAUTH_AUTHORIZATION_URL and OAUTH_TOKEN_URL, instead of the document.',
};

/** §8.5. */
const FRESH_MS = 300_000;
/** After a failure, the provider gets no request for this long. */
const COOL_DOWN_MS = 2000;
const LIMITS = { timeoutMs: 5000, maxBytes: 1_048_576 };

/** `setting` is the setting that contains the issuer. */
export function createProviderMetadata(
  { fetch, clock, log }: Pick<Runtime, 'fetch' | 'clock' | 'log'>,
  issuer: string,
  setting: IssuerSetting = OIDC_ISSUER,
): ProviderMetadata {
  const url = buildDiscoveryUrl(issuer);
  let kept: { readonly document: ProviderDocument; readonly at: number } | undefined;
  let failed: { readonly cause: unknown; readonly at: number } | undefined;
  let running: Promise<ProviderDocument> | undefined;
  /** The mismatching issuer that has been logged. */
  let reported: string | undefined;

  async function load(): Promise<ProviderDocument> {
    try {
      const document = await fetchDocument(fetch, url);
      checkDocumentIssuer(document.issuer);
      kept = { document, at: clock.monotonic() };
      failed = undefined;
      return document;
    } catch (cause) {
      failed = { cause, at: clock.monotonic() };
      throw cause;
    } finally {
      running = undefined;
    }
  }

  /** OpenID Connect Discovery §4.3. */
  function checkDocumentIssuer(found: string) {
    const isNew = found !== reported;
    reported = found === issuer ? undefined : found;
    if (found === issuer) return;
    const problem = `${describeIssuerMismatch('issuer in the discovery document', found, issuer)} (${setting.variable})`;
    if (isNew) {
      log.error(`${problem}: the document is not used. ${setting.advice}`, {
        url: stripUri(url),
        found,
        expected: issuer,
      });
    }
    throw new IssuerMismatch(`${problem}; set ${setting.remedy}`);
  }

  const isWithin = (ms: number, since: { readonly at: number } | undefined) =>
    since !== undefined && clock.monotonic() - since.at < ms;

  return {
    issuer,
    async get() {
      if (kept && isWithin(FRESH_MS, kept)) return kept.document;
      if (failed && isWithin(COOL_DOWN_MS, failed)) {
        if (kept) return kept.document;
        throw failed.cause;
      }
      running ??= load();
      const stale = kept?.document;
      return stale === undefined ? running : running.catch(() => stale);
    },
  };
}

/** OpenID Connect Discovery §4.1: exactly one slash between them, whatever the issuer ends with. */
export const buildDiscoveryUrl = (issuer: string): string =>
  `${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`;

/**
 * Returns the document for callers that cannot do without it.
 *
 * @throws GatewayError `internal_error` while the provider is down.
 */
export async function requireProviderDocument(
  metadata: ProviderMetadata,
): Promise<ProviderDocument> {
  try {
    return await metadata.get();
  } catch (cause) {
    return fail('internal_error', {
      details:
        "The provider's discovery document could not be loaded. The gateway's log has the reason.",
      cause,
    });
  }
}

async function fetchDocument(fetch: Fetch, url: string): Promise<ProviderDocument> {
  const headers = { Accept: 'application/json' };
  const { status, body } = await fetchWithLimits(fetch, url, { headers }, LIMITS);
  if (status !== 200) throw new Error(`${stripUri(url)} answered ${status}`);
  const members = parseObject(body);
  if (members === undefined) throw new Error(`${stripUri(url)} is not a JSON object`);
  const { issuer, jwks_uri, scopes_supported: scopes } = members;
  const { id_token_signing_alg_values_supported: algorithms } = members;
  if (typeof issuer !== 'string') throw new Error(`${stripUri(url)} does not name its issuer`);
  if (!isUrl(jwks_uri)) throw new Error(`${stripUri(url)} does not name a jwks_uri`);
  return {
    issuer,
    jwks_uri,
    ...(isStringArray(scopes) && { scopes_supported: scopes }),
    ...(isStringArray(algorithms) && { id_token_signing_alg_values_supported: algorithms }),
    ...Object.fromEntries(
      ENDPOINTS.flatMap((name) => (isUrl(members[name]) ? [[name, members[name]]] : [])),
    ),
    ...Object.fromEntries(FLAGS.map((name) => [name, members[name] === true])),
  };
}

const ENDPOINTS = [
  'authorization_endpoint',
  'token_endpoint',
  'revocation_endpoint',
  'userinfo_endpoint',
  'end_session_endpoint',
] as const;

/** False by default. */
const FLAGS = [
  'authorization_response_iss_parameter_supported',
  'backchannel_logout_supported',
  'backchannel_logout_session_supported',
] as const;

const isUrl = (value: unknown): value is string =>
  typeof value === 'string' && /^https?:\/\//i.test(value) && URL.canParse(value);

// RFC 7519 §4.1.1, RFC 8414 §3.3: issuers are compared literally, character by character.

/** The discovery document contains a different issuer; it was logged when first seen. */
export class IssuerMismatch extends Error {
  override readonly name = 'IssuerMismatch';
}

/** Describes the difference between two issuers, as a sentence without a full stop. */
export function describeIssuerMismatch(what: string, found: unknown, expected: string): string {
  if (found === undefined) return `The ${what} is missing; it must be ${quote(expected)}`;
  const differing = `The ${what} is ${quote(found)} and must be ${quote(expected)}`;
  if (found === `${expected}/`) return `${differing}, without the slash at the end`;
  if (typeof found === 'string' && `${found}/` === expected)
    return `${differing}, with the slash at the end`;
  return differing;
}

// OpenID Connect Discovery §3: the provider's endpoints, from settings or the document.

export type ProviderEndpoints = ReturnType<typeof createProviderEndpoints>;

export function createProviderEndpoints(
  configured: OAuthConfig['endpoints'],
  metadata: ProviderMetadata,
) {
  const findDocument = () => metadata.get().catch(() => undefined);

  async function findUrl(
    url: string | undefined,
    member: 'authorization_endpoint' | 'token_endpoint' | 'revocation_endpoint',
    variable: string,
  ) {
    return (
      url ??
      (await requireProviderDocument(metadata))[member] ??
      fail('not_configured', {
        details: `${variable} is not set on this gateway, and the provider's discovery document has no ${member}.`,
      })
    );
  }

  return {
    /** The issuer in the provider's redirects. */
    issuer: metadata.redirectIssuer ?? metadata.issuer,
    /** @throws GatewayError `not_configured`, or `internal_error` while the provider is down. */
    findAuthorizationUrl: () =>
      findUrl(configured.authorizationUrl, 'authorization_endpoint', 'OAUTH_AUTHORIZATION_URL'),
    findTokenUrl: () => findUrl(configured.tokenUrl, 'token_endpoint', 'OAUTH_TOKEN_URL'),
    findRevocationUrl: () =>
      findUrl(configured.revocationUrl, 'revocation_endpoint', 'OAUTH_REVOCATION_URL'),
    /** The page for logging out in the browser; undefined if the provider has none, or its discovery document is unavailable. */
    findEndSessionUrl: async () => (await findDocument())?.end_session_endpoint,
    /** The scopes that the provider lists; empty as long as its discovery document was never fetched. */
    listScopes: async () => (await findDocument())?.scopes_supported ?? [],
    /**
     * RFC 9207 §2.3: whether the provider adds its issuer to redirects; undefined if its discovery document was never fetched and
     * cannot be fetched now.
     */
    async sendsIssuer() {
      const document = await findDocument();
      return document && document.authorization_response_iss_parameter_supported === true;
    },
  };
}

// Metadata of a provider without a discovery document.

export const openProviderMetadata = (
  runtime: Pick<Runtime, 'fetch' | 'clock' | 'log'>,
  { issuer, login }: Pick<ProviderConfig, 'issuer' | 'login'>,
): ProviderMetadata => METADATA[login](runtime, issuer);

const METADATA: { readonly [Login in ProviderLogin]: typeof createProviderMetadata } = {
  openid: createProviderMetadata,
  github: (_runtime, issuer) => ({
    issuer,
    // Its name as an authorization server: https://docs.github.com/apps/github-authentication-discovery-endpoints
    redirectIssuer: `${issuer}/login/oauth`,
    isFixed: true,
    get: async () => ({
      issuer,
      authorization_endpoint: `${issuer}/login/oauth/authorize`,
      token_endpoint: `${issuer}/login/oauth/access_token`,
      userinfo_endpoint: `${findGithubApi(issuer)}/user`,
    }),
  }),
};

// GitHub's endpoints: no document lists them reliably.
// https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps
// https://docs.github.com/enterprise-server/rest/using-the-rest-api/getting-started-with-the-rest-api (/api/v3)
// https://docs.github.com/enterprise-cloud@latest/admin/data-residency/getting-started-with-data-residency-for-github-enterprise-cloud
// (api.<name>.ghe.com)

/** The base URL of the REST API, without a trailing slash. `url` is GITHUB_URL. */
export function findGithubApi(url: string): string {
  const { host, protocol } = new URL(url);
  const hasHostOfItsOwn = host === 'github.com' || host.endsWith('.ghe.com');
  return hasHostOfItsOwn ? `${protocol}//api.${host}` : `${url}/api/v3`;
}
