// §2.2, §3.2: registered clients in the shared store.
import type { RegistrationConfig } from '../../config/groups/clients.ts';
import { isRegisteredClientId, REGISTERED_CLIENT_PREFIX } from '../../platform/ids.ts';
import { isObject, isStringArray, parseObject } from '../../platform/json.ts';
import { buildClientKey, CLIENT_LIST_KEY } from '../../store/keys.ts';
import type { Page, PageRequest } from '../../store/page.ts';
import { checkRecordVersion, writeVersioned } from '../../store/records.ts';
import type { KeyValue } from '../../store/store.ts';

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

export interface RegisteredClients {
  /** Undefined when unknown or expired. @throws what the store throws. */
  find(clientId: string): Promise<RegisteredClient | undefined>;
  /** A new one. Durable once resolved. @throws what the store throws. */
  add(client: RegisteredClient): Promise<void>;
  /**
   * One that got a token: begins its full time anew. One that was removed meanwhile stays so.
   *
   * @throws what the store throws.
   */
  keep(client: RegisteredClient): Promise<void>;
}

export interface RegistrationTtl extends Pick<RegistrationConfig, 'ttlSeconds'> {
  /** Until the client first gets a token: anybody may register, and most never come back. */
  readonly unusedTtlSeconds: number;
}

/** §4.6: such a client is looked up here; every other id is the provider's to judge. */
export const hasRegisteredClientPrefix = (clientId: string): boolean =>
  clientId.startsWith(REGISTERED_CLIENT_PREFIX);

export const createRegisteredClients = (
  store: KeyValue,
  { ttlSeconds, unusedTtlSeconds }: RegistrationTtl,
): RegisteredClients => ({
  async find(clientId) {
    // Nothing that was never issued reaches the store.
    if (!isRegisteredClientId(clientId)) return undefined;
    const record = await store.get(buildClientKey(clientId));
    return record === undefined ? undefined : readRecord(clientId, record);
  },
  add: (client) => store.setListed(...toListedRecord(client), unusedTtlSeconds),
  async keep(client) {
    await store.replaceListed(...toListedRecord({ ...client, used: true }), ttlSeconds);
  },
});

/** For operators. */
export interface ClientDirectory {
  /** Those that expire last first. A record that cannot be read is left out. */
  list(request: PageRequest): Promise<Page<ListedClient>>;
  /** False when there is none. Tokens that it has stay valid until they expire, and it can refresh none. */
  delete(clientId: string): Promise<boolean>;
}

export interface ListedClient {
  readonly client: RegisteredClient;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

export const createClientDirectory = (
  store: Pick<KeyValue, 'readListed' | 'deleteListed'>,
): ClientDirectory => ({
  async list(request) {
    const { items, next } = await store.readListed(CLIENT_LIST_KEY, request);
    const clients = items.flatMap(({ value, expiresAt }) => {
      const client: unknown = parseObject(value);
      return isRegisteredClient(client) ? [{ client, expiresAt }] : [];
    });
    return { items: clients, next };
  },
  delete: (clientId) => store.deleteListed(CLIENT_LIST_KEY, buildClientKey(clientId)),
});

/** List, key and value. */
const toListedRecord = (client: RegisteredClient) =>
  [CLIENT_LIST_KEY, buildClientKey(client.client_id), writeVersioned(client)] as const;

function readRecord(clientId: string, text: string): RegisteredClient {
  const record: unknown = JSON.parse(text);
  if (isRegisteredClient(record)) {
    checkRecordVersion(record.version, `The record of client ${clientId} in the store`);
    return record;
  }
  throw new Error(`The record of client ${clientId} in the store is damaged`);
}

const isRegisteredClient = (record: unknown): record is RegisteredClient =>
  isObject(record) && isStringArray(record.redirect_uris);
