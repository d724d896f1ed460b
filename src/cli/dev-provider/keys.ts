import { generateKeyPair, type JsonWebKey, randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isObject } from '../../core/json.ts';

/** What the development provider signs tokens and cookies with. */
export interface ProviderKeys {
  /** A private RS256 key as a JWK (RFC 7517). */
  readonly signing: JsonWebKey;
  readonly cookie: string;
}

/** The keys kept in `folder`, made there the first time: tokens outlive a restart. */
export async function keptKeys(folder: string): Promise<ProviderKeys> {
  const file = join(folder, 'dev-provider-keys.json');
  const kept = await readKeys(file);
  if (kept !== undefined) return kept;
  const keys = await newKeys();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(file, JSON.stringify(keys), { mode: 0o600 });
  return keys;
}

export async function newKeys(): Promise<ProviderKeys> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  const kid = randomBytes(8).toString('hex');
  return {
    signing: { ...privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' },
    cookie: randomBytes(32).toString('base64url'),
  };
}

/** Undefined when there is no such file, or when it holds something else. */
async function readKeys(file: string): Promise<ProviderKeys | undefined> {
  try {
    const kept: unknown = JSON.parse(await readFile(file, 'utf8'));
    return isKeys(kept) ? kept : undefined;
  } catch {
    return undefined;
  }
}

const isKeys = (kept: unknown): kept is ProviderKeys =>
  isObject(kept) && isObject(kept.signing) && typeof kept.cookie === 'string';
