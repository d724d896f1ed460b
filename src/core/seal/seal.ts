// Authenticated encryption of what lies in the shared store.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

export interface Seal {
  /** `context` (the key in the store, say) must be the same for opening: nothing can be swapped. */
  seal(context: string, text: string): string;
  /** Undefined for what was not sealed by one of the secrets in this context. */
  open(context: string, sealed: string): string | undefined;
  /** Whether it says of itself that another secret sealed it; anybody can write that. */
  namesOtherSecret(sealed: string): boolean;
}

interface Key {
  readonly bytes: Buffer;
  /** Tells keys apart, and nothing about them. */
  readonly fingerprint: string;
}

const ALGORITHM = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * The first secret seals, all open: a new one is put in front, the old one taken away later.
 *
 * @throws Error without any.
 */
export function createSeal(secrets: readonly string[]): Seal {
  const keys = secrets.map(keyOf);
  const [key] = keys;
  if (key === undefined) throw new Error('A seal needs a secret');
  return {
    seal(context, text) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv(ALGORITHM, key.bytes, iv);
      cipher.setAAD(Buffer.from(context));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      const bytes = Buffer.concat([iv, sealed, cipher.getAuthTag()]);
      return `${bytes.toString('base64url')}${SEPARATOR}${key.fingerprint}`;
    },
    open(context, sealed) {
      const { bytes, fingerprint } = takeApart(sealed);
      if (bytes === undefined || bytes.length < IV_BYTES + TAG_BYTES) return undefined;
      const fitting = keys.filter((one) => (fingerprint ?? one.fingerprint) === one.fingerprint);
      return firstDefined(fitting, (one) => openWith(one.bytes, context, bytes));
    },
    namesOtherSecret(sealed) {
      const { fingerprint } = takeApart(sealed);
      return fingerprint !== undefined && keys.every((one) => one.fingerprint !== fingerprint);
    },
  };
}

/**
 * Version 0.1.0 writes no fingerprint, and reads what has one: base64 ends at its padding, and
 * Node's decoder does not look behind it.
 */
const SEPARATOR = '=';

interface Parts {
  /** Undefined for another spelling than that of `seal`: decoders take several for the same bytes. */
  readonly bytes: Buffer | undefined;
  readonly fingerprint: string | undefined;
}

function takeApart(sealed: string): Parts {
  const at = sealed.indexOf(SEPARATOR);
  const text = at < 0 ? sealed : sealed.slice(0, at);
  const bytes = Buffer.from(text, 'base64url');
  return {
    bytes: bytes.toString('base64url') === text ? bytes : undefined,
    fingerprint: at < 0 ? undefined : sealed.slice(at + SEPARATOR.length),
  };
}

function openWith(key: Buffer, context: string, bytes: Buffer): string | undefined {
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

function firstDefined<Item, Found>(
  items: readonly Item[],
  find: (item: Item) => Found | undefined,
) {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

const FINGERPRINT_BYTES = 6;

const keyOf = (secret: string): Key => ({
  bytes: derive(secret, 'postern log-in state', 32),
  fingerprint: derive(secret, 'postern fingerprint', FINGERPRINT_BYTES).toString('base64url'),
});

const derive = (secret: string, purpose: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', purpose, bytes));
