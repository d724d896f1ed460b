// What the discovery document says that the provider can do, against what the gateway will ask of it.

import { buildDiscoveryUrl } from '../../../auth/provider-metadata.ts';
import { isStringArray, type JsonObject } from '../../../platform/json.ts';
import { type Finding, warning } from '../finding.ts';
import { isDiscovered } from './check-discovery.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

export async function checkCapabilities({
  access,
  config: { oauth },
  probe,
}: SettingsAtHand): Promise<readonly Finding[]> {
  if (access === undefined || !(await isDiscovered(access))) return [];
  const { json } = await probe(buildDiscoveryUrl(access.provider.issuer));
  const { secret, authMethod } = oauth.providerClient;
  const method = `client_secret_${authMethod}`;
  return [
    ...(secret !== undefined && lacks(json, 'token_endpoint_auth_methods_supported', method)
      ? [
          warning(
            'provider.client-auth',
            `The provider does not list ${method} as a way to send the secret.`,
            {
              setting: 'OAUTH_CLIENT_AUTH',
              remedy: `set OAUTH_CLIENT_AUTH=${authMethod === 'post' ? 'basic' : 'post'}.`,
            },
          ),
        ]
      : []),
    ...(lacks(json, 'code_challenge_methods_supported', 'S256')
      ? [
          warning(
            'provider.pkce',
            'The provider does not list PKCE with S256, which the gateway sends.',
            {
              remedy: 'use a provider, or a version of it, that knows PKCE (RFC 7636).',
            },
          ),
        ]
      : []),
  ];
}

/** A provider that does not say is not complained of. */
function lacks(document: JsonObject | undefined, name: string, value: string): boolean {
  const listed = document?.[name];
  return isStringArray(listed) && !listed.includes(value);
}
