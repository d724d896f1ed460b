// Spec §4.8, RFC 7591 §3: dynamic client registration.
import type { Clock } from '../../core/clock.ts';
import { newClientId } from '../../core/ids.ts';
import { json, type Reply } from '../../core/message.ts';
import { parseClientMetadata } from './client-metadata.ts';
import type { RegisteredClients } from './registered-clients.ts';

/** A client is public: no secret is issued, whatever method it names (Spec §5.8, decisions 6). */
export const createRegister = (clients: RegisteredClients, clock: Clock) =>
  async function register(body: unknown): Promise<Reply> {
    const metadata = parseClientMetadata(body);
    const client = {
      client_id: newClientId(),
      ...metadata,
      client_id_issued_at: Math.floor(clock.now() / 1000),
      client_secret_expires_at: 0 as const,
    };
    await clients.add(client);
    return json(201, client, { 'Cache-Control': 'no-store' });
  };
