// §4.6: the parties of a login, in both modes: clients, and browsers with what their users approved in them.

import { parseScope } from '../config/scope.ts';
import type { Browsers } from '../http/endpoint/own-pages.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Logouts } from './broker/logouts.ts';
import type { ClientDocuments } from './client-id-metadata/client-documents.ts';
import { type Clients, createClients } from './clients/clients.ts';
import { createRegisteredClients, type RegisteredClients } from './clients/registered-clients.ts';
import { type Approvals, createApprovals, createBrowsers } from './consent/browser.ts';
import { listGrantedScopes } from './provider/provider-parameters.ts';

export interface Parties {
  readonly registered: RegisteredClients;
  readonly clients: Clients;
  readonly browsers: Browsers;
  readonly approvals: Approvals;
  /** The scopes that the provider will be asked for when a client sends this `scope`. */
  readonly listScopes: (scope: string | undefined) => readonly string[];
}

const ONE_DAY_SECONDS = 86_400;

/** `logouts` is undefined where clients get the provider's tokens. */
export function createParties(
  { config, store, clock }: Runtime,
  clientDocuments: ClientDocuments,
  logouts: Logouts | undefined,
): Parties {
  const { server, admin, oauth } = config;
  const { baseUrl } = server;
  const { registration, redirectUris, clientIdMetadata, consent } = oauth;
  const { ttlSeconds, isRenewed } = registration;
  const isBroker = oauth.mode === 'broker';
  const listScopes = isBroker
    ? (scope: string | undefined) => listGrantedScopes(oauth, scope)
    : parseScope;
  const registered = createRegisteredClients(store, {
    ttlSeconds,
    // Of a registration until its client first gets a token.
    unusedTtlSeconds: isBroker ? Math.min(ONE_DAY_SECONDS, ttlSeconds) : ttlSeconds,
  });
  return {
    registered,
    clients: createClients({
      registered,
      // Switched off, such an id is the provider's to judge, like any other.
      documents: clientIdMetadata.allowedHosts.length > 0 ? clientDocuments : undefined,
      allowsAnyLoopbackPort: redirectUris.allowsAnyLoopbackPort,
      renewal: isRenewed ? 'every' : isBroker ? 'first' : 'none',
      ttlSeconds,
      clock,
      baseUrl,
      hasOperatorsPage: admin.groups.length > 0,
    }),
    browsers: createBrowsers(baseUrl, consent.ttlSeconds),
    approvals: createApprovals(store, { ttlSeconds: consent.ttlSeconds, listScopes }, logouts),
    listScopes,
  };
}
