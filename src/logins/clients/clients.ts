// The clients that there are: those that registered, those that a document of theirs describes, and the
// gateway's own.

import { fail } from '../../errors/gateway-error.ts';
import {
  buildPlaygroundCallbackUrl,
  OPERATORS_CLIENT_ID,
  PLAYGROUND_CLIENT_ID,
} from '../../http/endpoint/own-clients.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { ClientDocumentRefused } from '../client-id-metadata/client-document.ts';
import type { ClientDocuments } from '../client-id-metadata/client-documents.ts';
import { isAtOrigin, isSameRedirectUri } from '../redirect-uri.ts';
import {
  hasRegisteredClientPrefix,
  type RegisteredClient,
  type RegisteredClients,
} from './registered-clients.ts';

/** A client, as a login needs it. */
export type Client = ClientFacts &
  (
    | { readonly kind: 'registered'; readonly registration: RegisteredClient }
    /** `host` is that of the document that describes it. */
    | { readonly kind: 'document'; readonly host: string }
    /** A page of the gateway's own. */
    | { readonly kind: 'own' }
  );

interface ClientFacts {
  readonly id: string;
  /** The name that the client gives itself. */
  readonly name: string | undefined;
  readonly redirectUris: readonly string[];
}

export type Clients = ReturnType<typeof createClients>;

/** The latter is a 401: it makes clients register anew and try again, the way out for an expired one. */
type ClientRefusal = 'unknown_client' | 'unauthenticated_client';

/** A share of the time for which a registration lives: one that was renewed within it is as good as new. */
const RENEWAL_SHARE = 0.01;

/**
 * `documents` are undefined where they are switched off: then such an id is the provider's to judge, like any other. `renewal` says which
 * tokens of a client renew its registration.
 */
export function createClients(
  { clock, config: { server, admin, oauth } }: Runtime,
  registered: RegisteredClients,
  documents: ClientDocuments | undefined,
  renewal: 'every' | 'first' | 'none',
) {
  const { redirectUris: redirectRules } = oauth;
  const renewed = createExpiringMap<true>('renewedClients', clock.now);

  /** §19.3: their redirect URI is at the gateway's own origin, where no other client may have one. */
  const own = new Map<string, Client>(
    [
      { id: PLAYGROUND_CLIENT_ID, name: 'Playground' },
      ...(admin.groups.length > 0 ? [{ id: OPERATORS_CLIENT_ID, name: "Operators' page" }] : []),
    ].map((client) => [
      client.id,
      { kind: 'own', ...client, redirectUris: [buildPlaygroundCallbackUrl(server.baseUrl)] },
    ]),
  );

  /**
   * The client of an id; its document is fetched where it is not at hand.
   *
   * @throws GatewayError `refusal`, which says why there is no such client, or what the store throws.
   */
  async function require(clientId: string, refusal: ClientRefusal): Promise<Client> {
    if (hasRegisteredClientPrefix(clientId)) {
      const registration = (await registered.find(clientId)) ?? fail(refusal);
      return { kind: 'registered', ...toClientFacts(registration), registration };
    }
    if (!documents?.isClientDocumentId(clientId)) return own.get(clientId) ?? fail(refusal);
    try {
      return createDocumentClient(await documents.find(clientId));
    } catch (error) {
      if (error instanceof ClientDocumentRefused) fail(refusal, { details: error.message });
      throw error;
    }
  }

  return {
    /** §4.6: whether the id is one of the gateway's; in proxy mode every other is the provider's to judge. */
    isKnownClient: (clientId: string) =>
      hasRegisteredClientPrefix(clientId) ||
      own.has(clientId) ||
      documents?.isClientDocumentId(clientId) === true,
    require,
    /**
     * The client that brings a code or a token of its own. A document was read when the login began and
     * says nothing that is needed here. Its host may be down by now, and nobody without a token shall
     * make us fetch: only its id is judged again.
     *
     * @throws GatewayError `unauthenticated_client`, or what the store throws.
     */
    async requireWithoutFetch(clientId: string): Promise<Client> {
      return !hasRegisteredClientPrefix(clientId) && documents?.isAllowed(clientId)
        ? createDocumentClient({ client_id: clientId, redirect_uris: [] })
        : require(clientId, 'unauthenticated_client');
    },
    /** Exact strings; on loopback any port, where that is allowed, but for the gateway's own client. */
    allowsRedirectUri({ kind, redirectUris }: Client, redirectUri: string) {
      if (kind === 'own') return redirectUris.includes(redirectUri);
      const isRegistered = redirectUris.some((uri) =>
        isSameRedirectUri(uri, redirectUri, redirectRules),
      );
      // Since any port counts, or BASE_URL has changed, it could be the gateway's own.
      return isRegistered && !isAtOrigin(redirectUri, server.baseUrl);
    },
    /**
     * The client got a token: its registration may be renewed, unless that was done a moment ago, measured by how long it
     * lives. Never rejects: the next one renews, too.
     */
    async recordUse(client: Client): Promise<void> {
      if (client.kind !== 'registered') return;
      const isFirst = client.registration.used === undefined;
      const isDue = isFirst || (renewal === 'every' && renewed.get(client.id) === undefined);
      if (renewal === 'none' || !isDue) return;
      const keptUntil = clock.now() + oauth.registration.ttlSeconds * 1000 * RENEWAL_SHARE;
      await registered.keep(client.registration).then(
        () => renewed.set(client.id, true, keptUntil),
        () => {},
      );
    },
  };
}

const createDocumentClient = (document: WireClient): Client => ({
  kind: 'document',
  ...toClientFacts(document),
  host: new URL(document.client_id).host,
});

type WireClient = Pick<RegisteredClient, 'client_id' | 'client_name' | 'redirect_uris'>;

const toClientFacts = ({ client_id, client_name, redirect_uris }: WireClient): ClientFacts => ({
  id: client_id,
  name: client_name,
  redirectUris: redirect_uris,
});
