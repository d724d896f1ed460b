// §2.2, §4.6: finds the client of an ID: one that registered, one that its metadata document describes, or one of the gateway's own.

import { fail } from '../../errors/gateway-error.ts';
import {
  buildPlaygroundCallbackUrl,
  OPERATORS_CLIENT_ID,
  PLAYGROUND_CLIENT_ID,
} from '../../http/endpoint/own-clients.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import { isRegisteredClientId, REGISTERED_CLIENT_PREFIX } from '../../platform/ids.ts';
import { isObject, isStringArray, parseObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildClientKey, CLIENT_LIST_KEY } from '../../store/keys.ts';
import type { PageRequest } from '../../store/page.ts';
import { checkRecordVersion, writeVersioned } from '../../store/records.ts';
import type { KeyValue } from '../../store/store.ts';
import { ClientDocumentRefused } from '../client-id-metadata/client-document.ts';
import type { ClientDocuments } from '../client-id-metadata/client-documents.ts';
import { isAtOrigin, isSameRedirectUri } from '../redirect-uri.ts';

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
    if (clientId.startsWith(REGISTERED_CLIENT_PREFIX)) {
      const registration = (await registered.find(clientId)) ?? fail(refusal);
      const { client_id: id, client_name: name, redirect_uris: redirectUris } = registration;
      return { kind: 'registered', id, name, redirectUris, registration };
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
      clientId.startsWith(REGISTERED_CLIENT_PREFIX) ||
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
      return !clientId.startsWith(REGISTERED_CLIENT_PREFIX) && documents?.isAllowed(clientId)
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

const createDocumentClient = ({
  client_id: id,
  client_name: name,
  redirect_uris: redirectUris,
}: Pick<RegisteredClient, 'client_id' | 'client_name' | 'redirect_uris'>): Client => ({
  kind: 'document',
  id,
  name,
  redirectUris,
  host: new URL(id).host,
});

// §2.2, §3.2: registered clients, in the shared store.

/** §2.2, RFC 7591 §3.2.1. Wire names: the record is stored and answered as it is. */
export interface RegisteredClient {
  readonly client_id: string;
  readonly client_name?: string;
  readonly redirect_uris: readonly string[];
  readonly grant_types: readonly string[];
  readonly response_types: readonly string[];
  readonly token_endpoint_auth_method: string;
  readonly software_id?: string;
  readonly software_version?: string;
  /** Unix seconds. */
  readonly client_id_issued_at: number;
  /** 0: there is no secret that could expire. */
  readonly client_secret_expires_at: 0;
  /** Stored only: the client got a token. */
  readonly used?: true;
  /** Stored only: of the record. */
  readonly version?: number;
}

export type RegisteredClients = ReturnType<typeof createRegisteredClients>;

/**
 * Each throws what the store throws. `unusedTtlSeconds` until the client first gets a token: anybody may register, and most
 * never come back.
 */
export const createRegisteredClients = (
  store: KeyValue,
  { ttlSeconds, unusedTtlSeconds }: { ttlSeconds: number; unusedTtlSeconds: number },
) => ({
  /** Undefined when unknown or expired. */
  async find(clientId: string): Promise<RegisteredClient | undefined> {
    // Nothing that was never issued reaches the store.
    if (!isRegisteredClientId(clientId)) return undefined;
    const text = await store.get(buildClientKey(clientId));
    if (text === undefined) return undefined;
    const record: unknown = JSON.parse(text);
    const name = `The record of client ${clientId} in the store`;
    if (!isRegisteredClient(record)) throw new Error(`${name} is damaged`);
    checkRecordVersion(record.version, name);
    return record;
  },
  /** A new one. Durable once resolved. */
  add: (client: RegisteredClient) => store.setListed(...toListedRecord(client), unusedTtlSeconds),
  /** One that got a token: begins its full time anew. One that was removed meanwhile stays so. */
  async keep(client: RegisteredClient) {
    await store.replaceListed(...toListedRecord({ ...client, used: true }), ttlSeconds);
  },
});

/** For operators. */
export const createClientDirectory = (store: KeyValue) => ({
  /** Those that expire last first, at `expiresAt` in epoch milliseconds. A record that cannot be read is left out. */
  async list(request: PageRequest) {
    const { items, next } = await store.readListed(CLIENT_LIST_KEY, request);
    const clients = items.flatMap(({ value, expiresAt }) => {
      const client: unknown = parseObject(value);
      return isRegisteredClient(client) ? [{ client, expiresAt }] : [];
    });
    return { items: clients, next };
  },
  /** False when there is none. Tokens that it has stay valid until they expire, and it can refresh none. */
  delete: (clientId: string) => store.deleteListed(CLIENT_LIST_KEY, buildClientKey(clientId)),
});

/** List, key and value. */
const toListedRecord = (client: RegisteredClient) =>
  [CLIENT_LIST_KEY, buildClientKey(client.client_id), writeVersioned(client)] as const;

const isRegisteredClient = (record: unknown): record is RegisteredClient =>
  isObject(record) && isStringArray(record.redirect_uris);
