// §24, RFC 6749 §2.3, RFC 7523: how the gateway says at an authorization server who it is.

import type { ClientAuthMethod } from '../../mcp/upstream/connection.ts';
import type { Clock } from '../../platform/clock.ts';
import { generateTokenId } from '../../platform/ids.ts';
import { type SigningKeys, signJwt } from '../../store/seal/signing-keys.ts';

/** Who the gateway is at one authorization server. */
export interface OAuthClient {
  readonly id: string;
  readonly secret: string | undefined;
  readonly method: ClientAuthMethod;
  /** For whom its assertions are; undefined for the endpoint that each is sent to. */
  readonly audience: string | undefined;
}

export type FormPair = readonly [name: string, value: string];

export interface AuthenticatedForm {
  readonly form: readonly FormPair[];
  readonly headers: Readonly<Record<string, string>>;
}

export type AuthenticateForm = (
  client: OAuthClient,
  url: string,
  form: readonly FormPair[],
) => Promise<AuthenticatedForm>;

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const ASSERTION_SECONDS = 60;

export const createAuthenticateForm = (keys: SigningKeys, clock: Clock): AuthenticateForm =>
  async function authenticateForm({ id, secret = '', method, audience }, url, form) {
    switch (method) {
      case 'none':
        return { form: [...form, ['client_id', id]], headers: {} };
      case 'post':
        return { form: [...form, ['client_id', id], ['client_secret', secret]], headers: {} };
      case 'basic': {
        // RFC 6749 §2.3.1: both halves form-encoded first.
        const pair = `${formEncode(id)}:${formEncode(secret)}`;
        const Authorization = `Basic ${Buffer.from(pair).toString('base64')}`;
        return { form, headers: { Authorization } };
      }
      case 'private_key_jwt': {
        const iat = Math.floor(clock.now() / 1000);
        // Never another endpoint than this one: whoever gets the assertion could use it there.
        const aud = audience ?? url;
        const claims = { iss: id, sub: id, aud, iat, exp: iat + ASSERTION_SECONDS };
        const assertion = signJwt(
          { ...claims, jti: generateTokenId() },
          await keys.getSigningKey(),
        );
        return {
          form: [
            ...form,
            ['client_id', id],
            ['client_assertion_type', ASSERTION_TYPE],
            ['client_assertion', assertion],
          ],
          headers: {},
        };
      }
    }
  };

/** `application/x-www-form-urlencoded`, of one value. */
export const formEncode = (text: string): string =>
  new URLSearchParams([['', text]]).toString().slice(1);

// The names that metadata and registrations have for the methods (RFC 7591 §2).

const METHOD_NAMES = {
  none: 'none',
  client_secret_post: 'post',
  client_secret_basic: 'basic',
  private_key_jwt: 'private_key_jwt',
} as const;

export const readMethodName = (name: unknown): ClientAuthMethod | undefined =>
  Object.entries(METHOD_NAMES).find(([wire]) => wire === name)?.[1];

export const writeMethodName = (method: ClientAuthMethod): string =>
  Object.entries(METHOD_NAMES).find(([, own]) => own === method)?.[0] ?? 'none';

/** What a client with a secret uses where nobody says it: RFC 8414 §2 has `client_secret_basic` for whoever does not list them. */
export function chooseSecretMethod(
  listed: readonly string[] | undefined,
  hasMetadata: boolean,
): ClientAuthMethod {
  // Servers without metadata, such as GitHub, document the form alone.
  if (!hasMetadata) return 'post';
  if (listed === undefined || listed.includes('client_secret_basic')) return 'basic';
  return listed.includes('client_secret_post') ? 'post' : 'basic';
}
