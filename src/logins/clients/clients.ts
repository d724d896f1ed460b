// §2.2, §4.6: finds the client with an ID: a registered one, one described by its metadata document, or one of the gateway's own.

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

/** A client, as logins need it. */
export type Client = {
  readonly id: string;
  /** Name that the client gives itself. */
  readonly name: string | undefined;
  readonly redirectUris: readonly string[];
} & (
  | { readonly kind: 'registered'; readonly registration: RegisteredClient }
  /** `host` is the host of its document. */
  | { readonly kind: 'document'; readonly host: string }
  /** One of the gateway's own pages. */
  | { readonly kind: 'own' }
);

export type Clients = ReturnType<typeof createClients>;

/** `unauthenticated_client` returns 401: it makes a client with an expired registration register again. */
type ClientRefusal = 'unknown_client' | 'unauthenticated_client';

/** Share of a registration's lifetime within which it is not renewed again. */
const RENEWAL_SHARE = 0.01;

/**
 * `documents` is undefined if client documents are switched off: such IDs are left to the provider, like any other. `renewal` says
 * which tokens renew a client's registration.
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
   * Finds the client of an ID; fetches its document if it is not cached.
   *
   * @throws GatewayError `refusal` for an unknown client; the store's error.
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
    /** §4.6: true if the ID is one of the gateway's; in proxy mode, all others are left to the provider. */
    isKnownClient: (clientId: string) =>
      clientId.startsWith(REGISTERED_CLIENT_PREFIX) ||
      own.has(clientId) ||
      documents?.isClientDocumentId(clientId) === true,
    require,
    /**
     * Finds the client that sends its own code or token. Its document was read when the login began, and is not needed again. Its
     * host may be down by now, and a caller without a token must not trigger a fetch: only the ID is validated again.
     *
     * @throws GatewayError `unauthenticated_client`, or the store's error.
     */
    async requireWithoutFetch(clientId: string): Promise<Client> {
      return !clientId.startsWith(REGISTERED_CLIENT_PREFIX) && documents?.isAllowed(clientId)
        ? createDocumentClient({ client_id: clientId, redirect_uris: [] })
        : require(clientId, 'unauthenticated_client');
    },
    /** Compares exact strings; on loopback any port, if that is allowed, except for the gateway's own client. */
    allowsRedirectUri({ kind, redirectUris }: Client, redirectUri: string) {
      if (kind === 'own') return redirectUris.includes(redirectUri);
      const isRegistered = redirectUris.some((uri) =>
        isSameRedirectUri(uri, redirectUri, redirectRules),
      );
      // With any port allowed, or after a change of BASE_URL, it could be the gateway's own.
      return isRegistered && !isAtOrigin(redirectUri, server.baseUrl);
    },
    /**
     * Renews the registration of a client that got a token, unless that was done recently, relative to its lifetime. Never
     * rejects: the next token renews it again.
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

/** §2.2, RFC 7591 §3.2.1. Wire names: the record is stored and returned as it is. */
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
  /** Stored only: the client has received a token. */
  readonly used?: true;
  /** Stored only: version of the record. */
  readonly version?: number;
}

export type RegisteredClients = ReturnType<typeof createRegisteredClients>;

/**
 * All methods throw the store's errors. `unusedTtlSeconds` applies until the client first gets a token: anybody may register, and
 * most clients never come back.
 */
export const createRegisteredClients = (
  store: KeyValue,
  { ttlSeconds, unusedTtlSeconds }: { ttlSeconds: number; unusedTtlSeconds: number },
) => ({
  /** Undefined if unknown or expired. */
  async find(clientId: string): Promise<RegisteredClient | undefined> {
    // IDs of any other form never reach the store.
    if (!isRegisteredClientId(clientId)) return undefined;
    const text = await store.get(buildClientKey(clientId));
    if (text === undefined) return undefined;
    const record: unknown = JSON.parse(text);
    const name = `The record of client ${clientId} in the store`;
    if (!isRegisteredClient(record)) throw new Error(`${name} is damaged`);
    checkRecordVersion(record.version, name);
    return record;
  },
  /** Adds a new client. Durable once resolved. */
  add: (client: RegisteredClient) => store.setListed(...toListedRecord(client), unusedTtlSeconds),
  /** Renews the full lifetime of a client that got a token. One that was removed in the meantime stays removed. */
  async keep(client: RegisteredClient) {
    await store.replaceListed(...toListedRecord({ ...client, used: true }), ttlSeconds);
  },
});

/** For operators. */
export const createClientDirectory = (store: KeyValue) => ({
  /** Those that expire last come first; `expiresAt` in epoch milliseconds. Unreadable records are left out. */
  async list(request: PageRequest) {
    const { items, next } = await store.readListed(CLIENT_LIST_KEY, request);
    const clients = items.flatMap(({ value, expiresAt }) => {
      const client: unknown = parseObject(value);
      return isRegisteredClient(client) ? [{ client, expiresAt }] : [];
    });
    return { items: clients, next };
  },
  /** The name that the client registered with; undefined for other clients. */
  async findName(clientId: string): Promise<string | undefined> {
    if (!isRegisteredClientId(clientId)) return undefined;
    const client: unknown = parseObject((await store.get(buildClientKey(clientId))) ?? '');
    return isRegisteredClient(client) ? client.client_name : undefined;
  },
  /** False if there is none. Its tokens stay valid until they expire, but cannot be refreshed. */
  delete: (clientId: string) => store.deleteListed(CLIENT_LIST_KEY, buildClientKey(clientId)),
});

/** List, key and value. */
const toListedRecord = (client: RegisteredClient) =>
  [CLIENT_LIST_KEY, buildClientKey(client.client_id), writeVersioned(client)] as const;

const isRegisteredClient = (record: unknown): record is RegisteredClient =>
  isObject(record) && isStringArray(record.redirect_uris);
