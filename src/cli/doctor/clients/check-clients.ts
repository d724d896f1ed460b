// What the walk found, as far as it decides which clients log in.
import type { Finding } from '../finding.ts';
import type { Walk } from '../walk/walk.ts';
import { findUnknownRedirectUris } from './find-unknown-redirect-uris.ts';
import { judgeClients } from './judge-clients.ts';

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
  if (document === undefined) return [];
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
