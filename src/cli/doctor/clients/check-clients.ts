// What the walk found, as far as it decides which clients log in.
import { type Finding, failure } from '../finding.ts';
import { askAuthorization } from '../provider/ask-authorization.ts';
import type { Walk } from '../walk/walk.ts';
import { judgeClients } from './judge-clients.ts';
import { KNOWN_CLIENTS } from './known-clients.ts';

export async function checkClients(walk: Walk): Promise<readonly Finding[]> {
  // Without authentication there is no login to fail.
  if ((await walk.callWithoutToken()).status !== 401) return [];
  const [places, resource, registration, login] = await Promise.all([
    walk.readServerMetadata(),
    walk.readResourceMetadata(),
    walk.register(),
    walk.logIn(),
  ]);
  const document = places.find((place) => place.document !== undefined)?.document;
  const servers = resource?.authorization_servers;
  if (
    document === undefined ||
    (login !== undefined && login.kind !== 'at-provider' && login.kind !== 'limited')
  )
    return [failure('clients', 'No client could log in, for the reasons above.')];
  return judgeClients({
    baseUrl: walk.baseUrl,
    isIssuerRight: Array.isArray(servers) && servers.includes(document.issuer),
    canRegister:
      registration?.kind === 'registered'
        ? true
        : registration?.kind === 'limited'
          ? undefined
          : false,
    offersDocuments: document.client_id_metadata_document_supported === true,
    refusesSchemes:
      registration?.kind === 'registered' && registration.refusedSchemes !== undefined,
    unknownRedirectUris:
      login?.kind === 'at-provider'
        ? await findUnknownRedirectUris(login.url, walk)
        : new Set<string>(),
  });
}

/** In proxy mode the provider sees the clients' own. */
async function findUnknownRedirectUris(
  url: string,
  { baseUrl, probe }: Walk,
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
