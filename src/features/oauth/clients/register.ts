// §4.8, RFC 7591 §3: dynamic client registration.
import { readBearerToken } from '../../../core/bearer-token.ts';
import type { Clock } from '../../../core/clock.ts';
import type { RegistrationConfig } from '../../../core/config/groups/clients.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import { generateClientId } from '../../../core/ids.ts';
import { createJsonReply, type PendingReply } from '../../../core/message.ts';
import { isEqualSecret } from '../../../core/sha256.ts';
import type { RedirectUriRules } from '../redirect-uri/redirect-uri.ts';
import { parseClientMetadata } from './client-metadata.ts';
import type { RegisteredClient, RegisteredClients } from './registered-clients.ts';

/** `accessToken` is the initial access token of RFC 7591 §3. */
export interface RegisterRules extends Pick<RegistrationConfig, 'accessToken'> {
  readonly redirectUris: RedirectUriRules;
}

/** A client is public: no secret is issued, whatever method it names (§5.8). */
export const createRegister = (clients: RegisteredClients, clock: Clock, rules: RegisterRules) =>
  async function register(body: unknown, authorization: string | undefined): Promise<PendingReply> {
    checkAccessToken(rules.accessToken, authorization);
    const client = {
      client_id: generateClientId(),
      ...parseClientMetadata(body, rules.redirectUris),
      client_id_issued_at: Math.floor(clock.now() / 1000),
      client_secret_expires_at: 0 as const,
    };
    checkSize(client);
    return async function add() {
      await clients.add(client);
      return createJsonReply(201, client, { 'Cache-Control': 'no-store' });
    };
  };

/** Anybody may register, and the store keeps it. */
const MAX_RECORD_BYTES = 8192;

function checkSize(client: RegisteredClient): void {
  const bytes = Buffer.byteLength(JSON.stringify(client));
  if (bytes <= MAX_RECORD_BYTES) return;
  fail('invalid_client_metadata', {
    details: `Client metadata may be at most ${MAX_RECORD_BYTES} bytes; this is ${bytes} bytes.`,
  });
}

function checkAccessToken(expected: string | undefined, authorization: string | undefined): void {
  if (expected === undefined) return;
  const token = readBearerToken(authorization);
  if (token !== undefined && isEqualSecret(token, expected)) return;
  fail('registration_token_required', { headers: { 'WWW-Authenticate': 'Bearer' } });
}
