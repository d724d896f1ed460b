// Redirect URIs of known clients that the provider does not know, where it sees those and not the gateway's own:
// in proxy mode.
import type { Probe } from '../network/probe.ts';
import { askAuthorization } from '../provider/ask-authorization.ts';
import { KNOWN_CLIENTS } from './known-clients.ts';

export interface FindOptions {
  /** Of the gateway. */
  readonly baseUrl: string;
  readonly probe: Probe;
}

/** `url` is an authorization request to the provider. @throws FetchError */
export async function findUnknownRedirectUris(
  url: string,
  { baseUrl, probe }: FindOptions,
): Promise<ReadonlySet<string>> {
  const sent = new URL(url).searchParams.get('redirect_uri') ?? '';
  const unknownUris = new Set<string>();
  if (sent === `${baseUrl}/oauth/callback`) return unknownUris;
  for (const redirectUri of new Set(KNOWN_CLIENTS.map((client) => client.redirectUri))) {
    const asked = new URL(url);
    asked.searchParams.set('redirect_uri', redirectUri);
    const { kind } = await askAuthorization(asked.href, probe);
    if (kind === 'redirect-uri-unknown') unknownUris.add(redirectUri);
  }
  return unknownUris;
}
