// RFC 6749 §2.3, RFC 7523: authenticates the gateway as a client, at its provider and at the authorization servers of MCP
// servers.

import { randomUUID } from 'node:crypto';
import type { Clock } from '../../platform/clock.ts';
import { type SigningKeys, signJwt } from '../../store/seal/signing-keys.ts';

type SecretMethod = 'none' | 'post' | 'basic';

export type ClientAuthMethod = SecretMethod | 'private_key_jwt';

/** The gateway's identity at one authorization server. */
export interface OAuthClient {
  readonly id: string;
  readonly secret: string | undefined;
  readonly method: ClientAuthMethod;
  /** The audience of its assertions; undefined means the endpoint that each is sent to. */
  readonly audience: string | undefined;
}

export type FormPair = readonly [name: string, value: string];

export interface AuthenticatedForm {
  readonly form: readonly FormPair[];
  readonly headers: Readonly<Record<string, string>>;
}

/** `namesClient`: the form also contains the client's ID, in addition to the Authorization header. */
export function authenticateBySecret(
  { id, secret = '', method }: Pick<OAuthClient, 'id' | 'secret'> & { method: SecretMethod },
  form: readonly FormPair[],
  namesClient: boolean,
): AuthenticatedForm {
  const named: readonly FormPair[] = [...form, ['client_id', id]];
  if (method === 'post') return { form: [...named, ['client_secret', secret]], headers: {} };
  if (method === 'none') return { form: named, headers: {} };
  const headers = { Authorization: createBasicAuthorization(id, secret) };
  return { form: namesClient ? named : form, headers };
}

/** RFC 6749 §2.3.1: both parts are form-encoded first. */
export const createBasicAuthorization = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${formEncode(id)}:${formEncode(secret)}`).toString('base64')}`;

/** Encodes one value as `application/x-www-form-urlencoded`. */
const formEncode = (text: string) => new URLSearchParams([['', text]]).toString().slice(1);

export const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const ASSERTION_SECONDS = 60;

export type AuthenticateForm = ReturnType<typeof createAuthenticateForm>;

/** Authenticates a form with any of the methods. */
export const createAuthenticateForm = (keys: SigningKeys, clock: Clock) =>
  async function authenticateForm(
    { id, secret, method, audience }: OAuthClient,
    url: string,
    form: readonly FormPair[],
  ): Promise<AuthenticatedForm> {
    if (method !== 'private_key_jwt')
      return authenticateBySecret({ id, secret, method }, form, false);
    const iat = Math.floor(clock.now() / 1000);
    // The default is this endpoint only: a recipient could replay the assertion at any other audience.
    const aud = audience ?? url;
    const claims = { iss: id, sub: id, aud, iat, exp: iat + ASSERTION_SECONDS };
    const assertion = signJwt({ ...claims, jti: randomUUID() }, await keys.getSigningKey());
    return {
      form: [
        ...form,
        ['client_id', id],
        ['client_assertion_type', ASSERTION_TYPE],
        ['client_assertion', assertion],
      ],
      headers: {},
    };
  };

/** Builds the request that posts the form. */
export const createFormRequest = ({ form, headers }: AuthenticatedForm) => ({
  method: 'POST' as const,
  headers: { ...headers, 'Content-Type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams(form.map((pair): [string, string] => [...pair])).toString(),
});

const SECRETS = new Set([
  'code',
  'code_verifier',
  'refresh_token',
  'token',
  'subject_token',
  'client_secret',
  'client_assertion',
]);

/**
 * Removes the secrets of a request from a response: some servers echo them, unchanged or encoded, and secrets must not be logged.
 */
export const redactSent = (text: string, sent: readonly FormPair[]): string =>
  sent
    .filter(([name, value]) => SECRETS.has(name) && value !== '')
    .flatMap(([, value]) => [value, encodeURIComponent(value), formEncode(value)])
    .reduce((redacted, spelling) => redacted.replaceAll(spelling, '…'), text);

// The names of the methods in metadata and registrations (RFC 7591 §2).

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

/**
 * Chooses the method for a client secret if none is configured. RFC 8414 §2 defaults to `client_secret_basic` if metadata lists
 * no methods.
 */
export function chooseSecretMethod(
  listed: readonly string[] | undefined,
  hasMetadata: boolean,
): ClientAuthMethod {
  // Servers without metadata, such as GitHub, only document the form.
  if (!hasMetadata) return 'post';
  if (listed === undefined || listed.includes('client_secret_basic')) return 'basic';
  return listed.includes('client_secret_post') ? 'post' : 'basic';
}
