// Authenticated encryption for data in the shared store.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';

export type Seal = ReturnType<typeof createSeal>;

export interface DerivedKey {
  /** 32 bytes. */
  readonly bytes: Buffer;
  /** Distinguishes secrets without revealing anything about them: 6 bytes. */
  readonly id: Buffer;
}

interface Key {
  readonly secret: string;
  readonly bytes: Buffer;
  readonly mac: Buffer;
  /** Distinguishes keys without revealing anything about them. */
  readonly fingerprint: string;
}

const ALGORITHM = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * The first secret seals, all of them open: a new one is put first, and the old one is removed later.
 *
 * @throws Error without secrets.
 */
export function createSeal(secrets: readonly string[]) {
  const keys = secrets.map(deriveKey);
  const [key] = keys;
  if (key === undefined) throw new Error('A seal needs a secret');
  const findKey = (fingerprint: string | undefined) =>
    keys.find((one) => one.fingerprint === fingerprint);

  return {
    /** Opening requires the same `context` (such as the key in the store), so that sealed values cannot be swapped. */
    seal: (context: string, text: string) => encrypt(key, context, text),
    /** Seals with the secret that sealed `before`, if it is one of these: other values sealed with it are still in use. */
    sealAsBefore(context: string, text: string, before: string) {
      const { fingerprint } = parseSealed(before);
      return encrypt(findKey(fingerprint) ?? key, context, text);
    },
    /** Undefined if none of the secrets sealed the text in this context. */
    open(context: string, sealed: string) {
      const { bytes, fingerprint } = parseSealed(sealed);
      const sealing = findKey(fingerprint);
      if (sealing === undefined || bytes === undefined) return undefined;
      return bytes.length < IV_BYTES + TAG_BYTES
        ? undefined
        : decrypt(sealing.bytes, context, bytes);
    },
    /** HMAC-SHA256 of the text in this context with each secret, the first one first; suitable as a lookup key. */
    computeMacs: (context: string, text: string): readonly string[] =>
      keys.map(({ mac }) =>
        createHmac('sha256', mac).update(`${context}\0`).update(text).digest('base64url'),
      ),
    /** True if a value claims to be sealed with an unknown secret. The claim can be forged. */
    namesForeignSecret(sealed: string) {
      const { fingerprint } = parseSealed(sealed);
      return fingerprint !== undefined && findKey(fingerprint) === undefined;
    },
    /**
     * True if the text, or its ending, claims to be sealed with the first secret; otherwise long-lived values are sealed again.
     */
    isSealedByFirst: (sealed: string) => parseSealed(sealed).fingerprint === key.fingerprint,
    /** Derives a key for `purpose` (HKDF-SHA256) from each secret, the first one first. */
    deriveKeys: (purpose: string): readonly DerivedKey[] =>
      keys.map(({ secret, fingerprint }) => ({
        bytes: deriveBytes(secret, purpose, 32),
        id: Buffer.from(fingerprint, 'base64url'),
      })),
  };
}

/** Precedes the fingerprint. */
const SEPARATOR = '=';

function parseSealed(sealed: string) {
  const at = sealed.indexOf(SEPARATOR);
  const text = at < 0 ? sealed : sealed.slice(0, at);
  const bytes = Buffer.from(text, 'base64url');
  return {
    /** Undefined for a spelling that `seal` does not produce: decoders accept several for the same bytes. */
    bytes: bytes.toString('base64url') === text ? bytes : undefined,
    fingerprint: at < 0 ? undefined : sealed.slice(at + SEPARATOR.length),
  };
}

function encrypt(key: Key, context: string, text: string) {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(ALGORITHM, key.bytes, iv);
  cipher.setAAD(Buffer.from(context));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  const bytes = Buffer.concat([iv, sealed, cipher.getAuthTag()]);
  return `${bytes.toString('base64url')}${SEPARATOR}${key.fingerprint}`;
}

function decrypt(key: Buffer, context: string, bytes: Buffer) {
  try {
    const end = bytes.length - TAG_BYTES;
    const options = { authTagLength: TAG_BYTES };
    const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, IV_BYTES), options);
    decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(end));
    const text = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, end)), decipher.final()]);
    return text.toString('utf8');
  } catch {
    return undefined;
  }
}

const FINGERPRINT_BYTES = 6;

/** The number of characters at the end of a sealed text that identify the secret. */
export const SEAL_ENDING_LENGTH = SEPARATOR.length + (FINGERPRINT_BYTES * 4) / 3;

const deriveKey = (secret: string): Key => ({
  secret,
  bytes: deriveBytes(secret, 'postern log-in state', 32),
  mac: deriveBytes(secret, 'postern mac', 32),
  fingerprint: deriveBytes(secret, 'postern fingerprint', FINGERPRINT_BYTES).toString('base64url'),
});

const deriveBytes = (secret: string, purpose: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', purpose, bytes));
