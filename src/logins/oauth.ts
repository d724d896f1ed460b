// §4.6–§4.8: the authorization server that clients see: its endpoints, in either mode, and the documents that lead to it.
import type { NamedPaths } from '../http/endpoint/endpoint.ts';

import type { Runtime } from '../runtime/runtime.ts';
import { warnOfForeignSecrets } from '../store/seal/secrets.ts';
import type { ProviderAccess } from './auth/auth.ts';
import { createBrokerMode } from './broker/broker.ts';
import type { Broker } from './broker/open-broker.ts';
import { createClientDocuments } from './client-id-metadata/client-documents.ts';
import { createDocumentOffer, createUncheckedOffer } from './client-id-metadata/document-offer.ts';
import { createRegister } from './clients/registered-clients.ts';
import { createConsent } from './consent/consent.ts';
import type { ListShownTools } from './consent/consent-page.ts';
import { createDiscoveryEndpoints, createServerMetadata } from './discovery.ts';
import { createOAuthEndpoints, type ModeAtEndpoints, type OAuthFront } from './endpoints.ts';
import { createParties, type Parties } from './parties.ts';
import { createProxy } from './proxy.ts';
import { selectRedirectUriRules } from './redirect-uri.ts';

/**
 * `broker` is for broker mode. `listTools` has those that everybody may see; undefined where strangers see none.
 *
 * @throws Error without what the mode and the consent page need: they are never left out in silence.
 */
export function createAuthorizationEndpoints(
  runtime: Runtime,
  provider: ProviderAccess,
  broker: Broker | undefined,
  namedPaths: NamedPaths,
  listTools: ListShownTools | undefined,
) {
  const { config, clock, outbound } = runtime;
  const { oauth, server } = config;
  const { allowedHosts } = oauth.clientIdMetadata;
  const redirectUris = selectRedirectUriRules(oauth, server.baseUrl);
  const network = outbound.openPublicNetwork();
  const clientDocuments = createClientDocuments(runtime, network, {
    allowedHosts,
    redirectUris,
    acceptsKeys: oauth.mode === 'broker' && oauth.idJag.isEnabled,
  });
  const documentOffer = outbound.isPublic
    ? createDocumentOffer(runtime, network, allowedHosts)
    : createUncheckedOffer(allowedHosts);

  const parties = createParties(runtime, clientDocuments, broker?.ends.logouts);
  const mode =
    oauth.mode === 'broker'
      ? createBrokerMode(requireBroker(runtime, provider, broker), parties, clientDocuments)
      : createProxy(runtime, oauth, parties.clients, provider.auth);
  const front = {
    ...createAuthorize(runtime, broker, parties, mode, listTools),
    register: createRegister(parties.registered, clock, {
      redirectUris,
      accessToken: oauth.registration.accessToken,
    }),
  };
  const metadataDocuments = createServerMetadata(
    config,
    provider.metadata,
    documentOffer.isOffered,
    () => broker !== undefined && broker.machineClients.list().length > 0,
  );
  const { noteRefusal } = mode.logins;

  /** One that names nobody is never given again: it need not be looked up. */
  async function noteRefusedToken(token: string): Promise<void> {
    if (provider.auth.inspectToken(token).sub !== undefined) await noteRefusal?.(token);
  }

  return {
    endpoints: [
      ...createOAuthEndpoints(oauth.popups, mode, front),
      ...createDiscoveryEndpoints(server.baseUrl, metadataDocuments, namedPaths),
    ],
    ownPages: mode.ownPages,
    /** To be told of each token that is refused with 401, before its bearer is. Undefined where that changes nothing. Never rejects. */
    noteRefusedToken: noteRefusal && noteRefusedToken,
    /** Looks from now on whether documents of clients can be fetched. */
    start: documentOffer.start,
    close: documentOffer.close,
  };
}

function requireBroker(
  { loginSeal }: Runtime,
  { metadata }: ProviderAccess,
  broker: Broker | undefined,
): Broker {
  if (metadata === undefined) throw new Error('Broker mode needs the endpoints of the provider');
  if (loginSeal === undefined) throw new Error('Broker mode needs a seal for its records');
  if (broker === undefined) throw new Error('Broker mode needs its grants');
  return broker;
}

/** With the consent page, or straight on to the provider. */
function createAuthorize(
  runtime: Runtime,
  broker: Broker | undefined,
  parties: Parties,
  mode: ModeAtEndpoints,
  listTools: ListShownTools | undefined,
): Pick<OAuthFront, 'authorize' | 'consent'> {
  const { config, store, loginSeal, tracing } = runtime;
  const { browsers } = parties;
  if (config.oauth.consent.kind === 'page') {
    const seal = broker?.runtime.seal ?? (loginSeal && warnOfForeignSecrets(loginSeal, runtime));
    if (seal === undefined) throw new Error('The consent page needs a seal for its records');
    return createConsent(runtime, { store, seal, tracing }, parties, mode, listTools);
  }
  return {
    async authorize(query, cookie) {
      const request = await mode.readRequest(query, cookie);
      return () => mode.redirectToProvider(request, browsers.getOrCreate(cookie));
    },
    consent: undefined,
  };
}
