// §4.6: opens the parties to a login, in both modes: clients, browsers, and what users approved in them.

import { parseScope } from '../config/rules.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { listGrantedScopes } from './broker/login.ts';
import type { Logouts } from './broker/logouts.ts';
import type { ClientDocuments } from './client-id-metadata/client-documents.ts';
import { createClients, createRegisteredClients } from './clients/clients.ts';
import { createApprovals, createBrowsers } from './consent/browser.ts';

export type Parties = ReturnType<typeof createParties>;

const ONE_DAY_SECONDS = 86_400;

/** `logouts` is undefined in proxy mode. */
export function createParties(
  runtime: Runtime,
  clientDocuments: ClientDocuments,
  logouts: Logouts | undefined,
) {
  const { server, oauth } = runtime.config;
  const { clientIdMetadata, consent } = oauth;
  const { ttlSeconds, isRenewed } = oauth.registration;
  const isBroker = oauth.mode === 'broker';
  const listShownScopes = isBroker
    ? (scope: string | undefined) => listGrantedScopes(oauth, scope)
    : parseScope;
  const registered = createRegisteredClients(runtime.store, {
    ttlSeconds,
    // Until the client first gets a token.
    unusedTtlSeconds: isBroker ? Math.min(ONE_DAY_SECONDS, ttlSeconds) : ttlSeconds,
  });
  return {
    registered,
    clients: createClients(
      runtime,
      registered,
      clientIdMetadata.allowedHosts.length > 0 ? clientDocuments : undefined,
      isRenewed ? 'every' : isBroker ? 'first' : 'none',
    ),
    browsers: createBrowsers(server.baseUrl, consent.ttlSeconds),
    approvals: createApprovals(runtime, listShownScopes, logouts),
    /** The scopes granted to a client that sends this `scope`, as the consent page shows them. */
    listShownScopes,
  };
}
