// The clients that may bring assertions: those of the configuration file, and those whose metadata document has keys.

import { fail } from '../../errors/gateway-error.ts';
import { truncateForLog } from '../../platform/log.ts';
import type { KeyHint } from '../auth/key-set.ts';
import type { MachineClient } from '../auth/machine-clients.ts';
import type { ProvenClient } from '../client-authentication/authenticate-client.ts';
import { ClientDocumentRefused } from '../client-id-metadata/client-document.ts';
import type { ClientDocuments } from '../client-id-metadata/client-documents.ts';

/** What is undefined is said for clients of the configuration file alone. */
export interface AssertingClient extends ProvenClient {
  /** What the client calls itself. */
  readonly name?: string | undefined;
  readonly scopes: MachineClient['scopes'] | undefined;
  readonly resources: MachineClient['resources'];
  readonly mark: MachineClient['mark'] | undefined;
}

/** @throws GatewayError `unauthenticated_machine`; `client_keys_unavailable` where its host cannot be reached. */
export const createFindByDocument = (
  documents: Pick<ClientDocuments, 'isClientDocumentId' | 'findKeyed'>,
) =>
  async function findByDocument(id: string, hint: KeyHint): Promise<AssertingClient | undefined> {
    if (!documents.isClientDocumentId(id)) return undefined;
    try {
      const { document, keys } = await documents.findKeyed(id, hint);
      return {
        id,
        name: document.client_name,
        credentials: { kind: 'keys', keys },
        scopes: undefined,
        resources: undefined,
        mark: undefined,
      };
    } catch (error) {
      if (!(error instanceof ClientDocumentRefused)) throw error;
      const client = truncateForLog(id);
      if (error.isUnreachable)
        fail('client_keys_unavailable', {
          headers: { 'Retry-After': '5' },
          cause: error,
          facts: { client },
        });
      return fail('unauthenticated_machine', {
        facts: { client, found: error.message, expected: 'a document with its keys' },
      });
    }
  };
