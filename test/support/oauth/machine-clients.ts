// Clients of the configuration file, and what they send to log in as themselves.
import {
  generateKeyPairSync,
  hash,
  type KeyObject,
  randomUUID,
  type SigningOptions,
  sign,
} from 'node:crypto';
import type { TestGateway, TestResponse } from '../gateway/gateway.ts';
import { readFile } from '../upstreams/gateway-file.ts';
import { BASE } from './own-tokens.ts';

export const SECRET = 'a-secret-that-is-long-enough-to-be-random';
export const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

export const hashHex = (secret: string): string => hash('sha256', secret, 'hex');

/** A client that has a secret. */
export const withSecret = (id: string, more: object = {}, secret = SECRET) => ({
  id,
  secretSha256: hashHex(secret),
  ...more,
});

/** The configuration file with these clients; they may use everything, unless `more` has rules. */
export const fileOf = (clients: readonly object[], more: object = {}) =>
  readFile({ rules: 'everyone', clients, ...more });

export interface SigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** The public one. */
  readonly jwk: Readonly<Record<string, unknown>>;
}

const PSS = { padding: 6, saltLength: 32 } as const;
const SIGNATURES: Readonly<
  Record<string, { readonly hash: string | null; readonly options?: SigningOptions }>
> = {
  RS256: { hash: 'sha256' },
  PS256: { hash: 'sha256', options: PSS },
  ES256: { hash: 'sha256', options: { dsaEncoding: 'ieee-p1363' } },
  EdDSA: { hash: null },
};

export function newKey(alg = 'ES256', kid: string = randomUUID()): SigningKey {
  const { privateKey, publicKey } = generatePair(alg);
  return {
    kid,
    alg,
    privateKey,
    publicKey,
    jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' },
  };
}

function generatePair(alg: string) {
  if (alg === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519');
  return generateKeyPairSync('rsa', { modulusLength: 2048 });
}

export type Members = Readonly<Record<string, unknown>>;

export const encodePart = (value: unknown): string =>
  Buffer.from(JSON.stringify(value)).toString('base64url');

/** A JWS in compact form, of whatever it is given. */
export function signJwt(header: Members, claims: unknown, { privateKey, alg }: SigningKey): string {
  const input = `${encodePart(header)}.${encodePart(claims)}`;
  const { hash: digest = 'sha256', options = {} } = SIGNATURES[alg] ?? {};
  const signature = sign(digest, Buffer.from(input), { key: privateKey, ...options });
  return `${input}.${signature.toString('base64url')}`;
}

/** `now` in epoch milliseconds; members that are undefined are left out. */
export const claimsOf = (clientId: string, now: number, change: Members = {}): Members => ({
  iss: clientId,
  sub: clientId,
  aud: BASE,
  exp: Math.floor(now / 1000) + 60,
  iat: Math.floor(now / 1000),
  jti: randomUUID(),
  ...change,
});

export const headerOf = ({ alg, kid }: SigningKey, change: Members = {}): Members => ({
  alg,
  kid,
  typ: 'JWT',
  ...change,
});

export const assertionOf = (
  clientId: string,
  key: SigningKey,
  now: number,
  { claims = {}, header = {} }: { readonly claims?: Members; readonly header?: Members } = {},
): string => signJwt(headerOf(key, header), claimsOf(clientId, now, claims), key);

export interface TokenRequest {
  readonly form?: Readonly<Record<string, string>>;
  readonly authorization?: string;
  readonly path?: string;
  /** In place of a form. */
  readonly body?: unknown;
  readonly remoteAddress?: string;
}

export const basic = (id: string, secret: string): string =>
  `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`;

export function askForToken(
  gateway: Pick<TestGateway, 'request'>,
  { form = {}, authorization, path = '/oauth/token', body, remoteAddress }: TokenRequest,
): Promise<TestResponse> {
  return gateway.request({
    method: 'POST',
    path,
    body: body ?? new URLSearchParams({ grant_type: 'client_credentials', ...form }),
    headers: authorization === undefined ? {} : { authorization },
    ...(remoteAddress !== undefined && { remoteAddress }),
  });
}

/** The access token. */
export async function getToken(
  gateway: Pick<TestGateway, 'request'>,
  id: string,
  form: Readonly<Record<string, string>> = {},
  secret = SECRET,
): Promise<string> {
  const { status, text } = await askForToken(gateway, { form, authorization: basic(id, secret) });
  if (status !== 200) throw new Error(`The token endpoint answered ${status}: ${text}`);
  return JSON.parse(text).access_token;
}
