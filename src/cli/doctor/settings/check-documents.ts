// Whether metadata documents of clients can be fetched, tried as the gateway tries it.

import { createDocumentOffer } from '../../../oauth/client-id-metadata/document-offer.ts';
import { createPublicNetwork } from '../../../oauth/client-id-metadata/network.ts';
import { isObject } from '../../../platform/json.ts';
import { type Found, ok, warning } from '../finding.ts';
import { createCollectingLog } from '../instruments.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

const CHECK = 'client-documents';

export async function checkDocuments({
  config: { oauth },
  clock,
  tunnel,
}: SettingsAtHand): Promise<Found> {
  const { allowedHosts } = oauth.clientIdMetadata;
  if (allowedHosts.length === 0)
    return ok(CHECK, 'Client ID metadata documents are switched off: clients register instead.');
  const { log, entries } = createCollectingLog();
  const network = createPublicNetwork({ clock, tunnel });
  const offer = createDocumentOffer({ allowedHosts, network, clock, log });
  offer.start();
  const isOffered = await offer.isOffered();
  offer.close();
  if (isOffered)
    return ok(CHECK, `Client ID metadata documents can be fetched (${allowedHosts.join(', ')}).`);
  const reasons = entries.map(({ facts }) => facts.reasons).find(isObject) ?? {};
  const [host, reason] = Object.entries(reasons)[0] ?? [];
  return warning(
    CHECK,
    `None of the hosts in CIMD_ALLOWED_HOSTS can be reached, so clients register instead.`,
    {
      ...(host !== undefined && { why: `${host}: ${String(reason)}` }),
      setting: 'CIMD_ALLOWED_HOSTS',
      remedy:
        'let the gateway reach them on port 443, set HTTPS_PROXY=http://host:port if only a proxy leads out, or set CIMD_ALLOWED_HOSTS=none.',
    },
  );
}
