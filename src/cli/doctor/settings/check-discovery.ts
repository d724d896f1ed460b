// The provider's discovery document and key set, read as the gateway reads them.

import { GatewayError } from '../../../errors/gateway-error.ts';
import { buildDiscoveryUrl, IssuerMismatch } from '../../../http/oauth-client/provider-metadata.ts';
import { FetchError } from '../../../platform/fetch-with-limits.ts';
import { isStringArray, type JsonObject } from '../../../platform/json.ts';
import { describeCause } from '../../../platform/log.ts';
import { quote } from '../../../platform/text.ts';
import { type Advice, type Found, failure, ok, warning } from '../finding.ts';
import { describeNetworkFailure, type FailureKind } from '../network-failure.ts';
import type { ProviderAtHand, SettingsAtHand } from './settings-at-hand.ts';

const CHECK = 'provider.discovery';

export async function checkDiscovery(settings: SettingsAtHand): Promise<Found> {
  const { access, config, probe } = settings;
  if (access === undefined) return [];
  if (access.metadata.isFixed) return checkReach(settings, access);
  const { issuer, jwksUrl } = access.provider;
  const url = buildDiscoveryUrl(issuer);
  try {
    await access.metadata.get();
    const what = `The provider's discovery document can be read, and names ${issuer} as its issuer.`;
    return ok(CHECK, what);
  } catch (error) {
    // Without need of the document nothing fails for the lack of it.
    const { tokenUrl, authorizationUrl } = config.oauth.endpoints;
    const isNeeded =
      jwksUrl === undefined || tokenUrl === undefined || authorizationUrl === undefined;
    const foundIssuer =
      error instanceof IssuerMismatch ? (await probe(url)).json?.issuer : undefined;
    const { check, ...seen } = explain(error, url, issuer, foundIssuer);
    return (isNeeded ? failure : warning)(check, seen);
  }
}

/** Of a provider whose endpoints are known without a document. It refuses a stranger, which is an answer. */
async function checkReach({ probe }: SettingsAtHand, { metadata }: ProviderAtHand): Promise<Found> {
  const { issuer, userinfo_endpoint: url = issuer } = await metadata.get();
  try {
    await probe(url);
    return ok(
      CHECK,
      `${issuer} can be reached. Its endpoints are known: it needs no discovery document.`,
    );
  } catch (error) {
    if (!(error instanceof FetchError)) throw error;
    const { check, ...seen } = explainNetwork(error, url, 'GITHUB_URL');
    return failure(check, seen);
  }
}

interface Explanation extends Advice {
  readonly check: string;
  readonly what: string;
}

/** `url` is that of the document. */
function explain(error: unknown, url: string, issuer: string, foundIssuer: unknown): Explanation {
  if (error instanceof IssuerMismatch) {
    const isSlash = String(foundIssuer).replace(/\/$/, '') === issuer.replace(/\/$/, '');
    return {
      check: 'provider.issuer',
      what: `The provider calls itself ${quote(foundIssuer)}, and OIDC_ISSUER is ${quote(issuer)}.`,
      why: `Issuers are compared character by character${isSlash ? ', and a slash at the end counts' : ''}: the gateway uses no document, and accepts no token, of another issuer.`,
      setting: 'OIDC_ISSUER',
      remedy: `set OIDC_ISSUER=${String(foundIssuer)} if this is the provider that you mean.`,
    };
  }
  if (error instanceof FetchError) return explainNetwork(error, url, 'OIDC_ISSUER');
  return {
    check: CHECK,
    what: `The provider's discovery document cannot be used: ${describeCause(error)}.`,
    setting: 'OIDC_ISSUER',
    remedy: `open ${url} in a browser: it must show a JSON document. A 404 means that the issuer's path (tenant, realm, letter case) is wrong.`,
  };
}

const REMEDIES: Readonly<Record<FailureKind, string>> = {
  name: 'correct the host name. If this machine has no internet by itself, set HTTPS_PROXY=http://host:port to the proxy that leads out; otherwise check its DNS.',
  refused: 'start the provider, or correct the host and port.',
  timeout:
    'check that the provider runs, and that a firewall lets this machine reach it. Where only a proxy leads out, set HTTPS_PROXY=http://host:port.',
  'certificate-expired': 'renew the certificate of the provider.',
  'certificate-name':
    'write the host name that the certificate has, if that is what the provider calls itself.',
  certificate:
    'put the certificate authority of the provider, or of the proxy that inspects TLS, into a file, and start the gateway with NODE_EXTRA_CA_CERTS=/path/to/ca.pem (in the environment, not in .env).',
  'no-tls': 'write http:// if the provider has no TLS (development only), or correct the port.',
  'tls-only': 'write https://, or correct the port.',
  proxy:
    'check HTTPS_PROXY and HTTP_PROXY (http://user:password@host:port), and which hosts the proxy allows. NO_PROXY lists hosts to reach directly.',
  other: 'check that the URL is that of the provider.',
};

const explainNetwork = (error: unknown, url: string, setting: string): Explanation => {
  const { kind, text } = describeNetworkFailure(error, url);
  return {
    check: 'provider.reachable',
    what: `The provider cannot be reached. ${text}`,
    why: 'Nobody can log in, and a gateway that starts now can check no token.',
    setting: kind === 'proxy' ? 'HTTPS_PROXY' : setting,
    remedy: REMEDIES[kind],
  };
};

export async function checkKeySet({ access }: SettingsAtHand): Promise<Found> {
  if (access === undefined || !(await isDiscovered(access))) return [];
  const url = access.provider.jwksUrl ?? (await access.metadata.get()).jwks_uri;
  if (url === undefined) return [];
  try {
    access.keySet.start();
    await access.keySet.waitForKeys();
    return ok(
      'provider.key-set',
      "The provider's key set can be read, and has keys that can be used.",
    );
  } catch (error) {
    const cause = error instanceof GatewayError ? error.cause : error;
    if (cause instanceof FetchError) {
      const { check: _check, ...seen } = explainNetwork(cause, url, 'OIDC_JWKS_URL');
      return failure('provider.key-set', seen);
    }
    return failure('provider.key-set', {
      what: `The provider's key set cannot be used: ${describeCause(cause)}.`,
      setting: 'OIDC_JWKS_URL',
      remedy: `open ${url} in a browser: it must show a JSON document with keys. authentik needs a signing key for this.`,
    });
  }
}

/** Or not needed. */
export const isDiscovered = ({ provider, metadata }: ProviderAtHand): Promise<boolean> =>
  provider.jwksUrl !== undefined
    ? Promise.resolve(true)
    : metadata.get().then(
        () => true,
        () => false,
      );

/** What the discovery document says that the provider can do, against what the gateway will ask of it. */
export async function checkCapabilities({
  access,
  config: { oauth },
  probe,
}: SettingsAtHand): Promise<Found> {
  if (access === undefined || access.metadata.isFixed || !(await isDiscovered(access))) return [];
  const { json } = await probe(buildDiscoveryUrl(access.provider.issuer));
  const { secret, authMethod } = oauth.providerClient;
  const method = `client_secret_${authMethod}`;
  const otherMethod = authMethod === 'post' ? 'basic' : 'post';
  return [
    secret !== undefined && lacks(json, 'token_endpoint_auth_methods_supported', method)
      ? warning('provider.client-auth', {
          what: `The provider does not list ${method} as a way to send the secret.`,
          setting: 'OAUTH_CLIENT_AUTH',
          remedy: `set OAUTH_CLIENT_AUTH=${otherMethod}.`,
        })
      : undefined,
    lacks(json, 'code_challenge_methods_supported', 'S256')
      ? warning('provider.pkce', {
          what: 'The provider does not list PKCE with S256, which the gateway sends.',
          remedy: 'use a provider, or a version of it, that knows PKCE (RFC 7636).',
        })
      : undefined,
  ];
}

/** A provider that does not say is not complained of. */
function lacks(document: JsonObject | undefined, name: string, value: string): boolean {
  const listed = document?.[name];
  return isStringArray(listed) && !listed.includes(value);
}
