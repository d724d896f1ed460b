// Which clients there are: those that registered, and those that a document of theirs describes.
import type { ClientDocuments } from '../client-id-metadata/client-documents.ts';
import { ClientDocumentRefused } from '../client-id-metadata/refusal.ts';
import { isAtOrigin, isSameRedirectUri } from './redirect-uri.ts';
import { isDynamic, type RegisteredClient, type RegisteredClients } from './registered-clients.ts';

/** What a log-in needs of a client. */
export interface KnownClient {
  readonly client_id: string;
  readonly client_name?: string;
  readonly redirect_uris: readonly string[];
  /** Host of the document that describes it; a client that registered itself has none. */
  readonly vouchedBy?: string;
}

/** The client, or why there is none, for whoever looks into the error. */
export type Found =
  | { readonly client: KnownClient; readonly problem?: undefined }
  | { readonly client?: undefined; readonly problem: string | undefined };

export interface Clients {
  /** Spec §4.6: such an id is judged here; in proxy mode every other is the provider's to judge. */
  isOurs(clientId: string): boolean;
  /** Whether the client is one that a document describes, and its host is allowed still. */
  isAllowedDocument(clientId: string): boolean;
  /** @throws what the store throws. */
  find(clientId: string): Promise<Found>;
  /** Exact strings; on loopback any port, where that is allowed. */
  allows(client: KnownClient, redirectUri: string): boolean;
  /** The client got a token. Never rejects: the next one renews, too. */
  used(client: KnownClient): Promise<void>;
}

export interface ClientsDeps {
  readonly registered: RegisteredClients;
  /** Undefined when they are switched off. */
  readonly documents: ClientDocuments | undefined;
  readonly loopbackAnyPort: boolean;
  /** Whether every token renews a registration, only the first, or none. */
  readonly renewal: 'every' | 'first' | 'none';
  readonly baseUrl: string;
}

export function createClients(deps: ClientsDeps): Clients {
  const { registered, documents, loopbackAnyPort, renewal, baseUrl } = deps;

  const isDocument = (clientId: string) => documents?.isClientDocumentId(clientId) === true;

  async function findDocument(clientId: string, from: ClientDocuments): Promise<Found> {
    try {
      const client = await from.find(clientId);
      return { client: { ...client, vouchedBy: new URL(clientId).host } };
    } catch (error) {
      if (error instanceof ClientDocumentRefused) return { problem: error.message };
      throw error;
    }
  }

  return {
    isAllowedDocument: (clientId) => documents?.isAllowed(clientId) === true,
    isOurs: (clientId) => isDynamic(clientId) || isDocument(clientId),
    async find(clientId) {
      if (documents && isDocument(clientId)) return findDocument(clientId, documents);
      const client = isDynamic(clientId) ? await registered.find(clientId) : undefined;
      return client === undefined ? { problem: undefined } : { client };
    },
    // By any port, or by a registration from before this was refused, it could be the gateway's own.
    allows: ({ redirect_uris: known }, redirectUri) =>
      known.some((uri) => isSameRedirectUri(uri, redirectUri, loopbackAnyPort)) &&
      !isAtOrigin(redirectUri, baseUrl),
    async used(client) {
      if (!isRegistered(client)) return;
      const isFirst = client.used === undefined;
      if (renewal === 'every' || (renewal === 'first' && isFirst)) {
        await registered.keep(client).catch(() => {});
      }
    },
  };
}

const isRegistered = (client: KnownClient): client is RegisteredClient =>
  client.vouchedBy === undefined && 'client_id_issued_at' in client;
