// Which clients would log in, as far as the settings decide it: for a gateway that does not run yet.
import { judgeClients } from '../clients/judge-clients.ts';
import type { Finding } from '../finding.ts';
import { EDITOR_SCHEME } from '../walk/register.ts';
import { findClientsOwnRedirects } from './check-authorization.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

export async function checkConfiguredClients(
  settings: SettingsAtHand,
): Promise<readonly Finding[]> {
  const { auth, oauth, server } = settings.config;
  if (!auth.required) return [];
  return judgeClients({
    baseUrl: server.baseUrl,
    isIssuerRight: oauth.mode === 'broker' || oauth.metadataIssuer === 'self',
    canRegister: oauth.registration.accessToken === undefined,
    offersDocuments: oauth.clientIdMetadata.allowedHosts.length > 0,
    refusesSchemes: !oauth.redirectUris.schemes.includes(EDITOR_SCHEME),
    unknownRedirectUris: await findClientsOwnRedirects(settings),
  });
}
