import { generateKeyPair, type JsonWebKey, randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { getErrorCode } from '../../platform/error-code.ts';
import { isObject } from '../../platform/json.ts';
import { StartError } from '../command/errors.ts';

/** What the development provider signs tokens and cookies with. */
export interface ProviderKeys {
  /** A private RS256 key as a JWK (RFC 7517). */
  readonly signing: JsonWebKey;
  readonly cookie: string;
}

/**
 * The keys kept in `folder`, created at the first start: tokens outlive a restart.
 *
 * @throws StartError where the folder cannot be written.
 */
export async function loadOrCreateProviderKeys(folder: string): Promise<ProviderKeys> {
  const file = join(folder, 'dev-provider-keys.json');
  const kept = await readKeyFile(file);
  if (kept !== undefined) return kept;
  const keys = await generateProviderKeys();
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(file, JSON.stringify(keys), { mode: 0o600 });
  } catch (error) {
    throw new StartError([
      `DATA_DIR: the folder ${folder} cannot be written (${getErrorCode(error) ?? String(error)}). Set it to one that this user can write, for example DATA_DIR=/tmp/postern-data`,
    ]);
  }
  return keys;
}

export async function generateProviderKeys(): Promise<ProviderKeys> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  const kid = randomBytes(8).toString('hex');
  return {
    signing: { ...privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' },
    cookie: randomBytes(32).toString('base64url'),
  };
}

/** Undefined when there is no such file, or when it holds something else. */
async function readKeyFile(file: string): Promise<ProviderKeys | undefined> {
  try {
    const content: unknown = JSON.parse(await readFile(file, 'utf8'));
    return isProviderKeys(content) ? content : undefined;
  } catch {
    return undefined;
  }
}

const isProviderKeys = (content: unknown): content is ProviderKeys =>
  isObject(content) && isObject(content.signing) && typeof content.cookie === 'string';
