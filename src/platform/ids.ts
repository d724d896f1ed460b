import { hash, randomBytes, randomInt, timingSafeEqual } from 'node:crypto';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** True for text in the form of a session id; anything else must never reach the store. */
export const isSessionId = (value: string): boolean => UUID.test(value);

/** True for a value in the form of the id of a request from the gateway to a client. */
export const isQuestionId = (value: unknown): value is string =>
  typeof value === 'string' && UUID.test(value);

/** §2.2: the prefix of a registered client's id. */
export const REGISTERED_CLIENT_PREFIX = 'svc-';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const REGISTERED_CLIENT_ID = /^svc-[A-Za-z0-9]{12}$/;

/** §2.2: `svc-` and 12 characters (71 bits of randomness). */
export const generateClientId = (): string =>
  REGISTERED_CLIENT_PREFIX +
  Array.from({ length: 12 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');

/** True for text in the form of a registered client's id. */
export const isRegisteredClientId = (value: string): boolean => REGISTERED_CLIENT_ID.test(value);

/** A reference that is shown with an error, so that the error can be found in the log. */
export const generateReference = (): string => randomBytes(4).toString('hex');

/** A secret of 256 random bits, as base64url. */
export const generateSecret = (): string => randomBytes(32).toString('base64url');

/**
 * SHA-256 as base64url, stored in place of a secret or a caller's text. It is as long as a key, so that it cannot be found by
 * trial. Also the S256 code challenge for a verifier (RFC 7636 §4.2).
 */
export const hashSha256 = (data: string | Uint8Array): string => hash('sha256', data, 'base64url');

/** Compares two secrets in constant time. */
export const isEqualSecret = (one: string, other: string): boolean =>
  timingSafeEqual(Buffer.from(hashSha256(one)), Buffer.from(hashSha256(other)));
