// Creates the seals that replicas share, with secrets from the settings, a file, or the store.

import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { StateSecret } from '../../config/groups/store.ts';
import type { Clock } from '../../platform/clock.ts';
import { getErrorCode } from '../../platform/error-code.ts';
import { generateSecret } from '../../platform/ids.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import { DataDirError } from '../embedded/lock.ts';
import { buildSharedSecretKey } from '../keys.ts';
import type { KeyValue } from '../store.ts';
import { createSeal, type Seal } from './seal.ts';

/** The seal for a login's records; undefined if a login leaves none. @throws DataDirError */
export async function createLoginSeal(secret: StateSecret | undefined): Promise<Seal | undefined> {
  if (secret === undefined) return undefined;
  return createSeal(
    secret.kind === 'given' ? secret.secrets : [await loadOrCreateSecretFile(secret.dataDir)],
  );
}

/**
 * The first secret seals, and any opens. During a rolling restart, all replicas have to know the new secret before one of them
 * seals with it. Records last for up to a day, and logins with the gateway's own tokens until their clients refresh.
 */
export const HOW_TO_CHANGE_SECRET =
  'To change the secret, restart all with old,new; then all with new,old; and a day later with new alone, unless postern doctor says that logins still need the old one.';

/**
 * Wraps the seal with a warning about records that another secret sealed: replicas with different secrets cannot read each
 * other's records, and logins fail occasionally without an apparent cause.
 */
export function warnOfForeignSecrets(seal: Seal, { clock, log }: ClockAndLog): Seal {
  const warn = createWarnThrottle(clock, () =>
    log.warn(
      `OAUTH_STATE_SECRET differs: a login was started with a secret that this replica does not have, so it fails here. Set the same list of secrets on all replicas. ${HOW_TO_CHANGE_SECRET}`,
    ),
  );

  return {
    ...seal,
    open(context, sealed) {
      const text = seal.open(context, sealed);
      if (text === undefined && seal.namesForeignSecret(sealed)) warn();
      return text;
    },
  };
}

// With the embedded store, the gateway's secret is in a file in DATA_DIR. Anyone who can read or choose it can read and forge
// sealed values.

const FILE = 'oauth-state-secret';
const MIN_BYTES = 32;

/**
 * Loads the secret from DATA_DIR; the first start creates it.
 *
 * @throws DataDirError if the file cannot be trusted.
 */
async function loadOrCreateSecretFile(dataDir: string) {
  const file = join(dataDir, FILE);
  const handle = await openIfPresent(file);
  if (handle === undefined) return createSecretFile(dataDir, file);
  try {
    await checkOwner(handle, file);
    const secret = (await handle.readFile('utf8')).trim();
    const bytes = Buffer.byteLength(secret);
    if (bytes < MIN_BYTES)
      failUntrusted(file, `holds only ${bytes} of at least ${MIN_BYTES} bytes`);
    return secret;
  } finally {
    await handle.close();
  }
}

/** Does not follow a link or wait for a pipe. Windows has neither flag. */
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** An existing but unreadable file must not be replaced: everything sealed with it would be lost. */
async function openIfPresent(file: string) {
  try {
    return await open(file, FLAGS);
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT') return undefined;
    if (getErrorCode(error) === 'ELOOP') return failUntrusted(file, 'is a link');
    if (getErrorCode(error) === 'EACCES')
      return failUntrusted(file, 'cannot be read by this process');
    throw error;
  }
}

async function checkOwner(handle: FileHandle, file: string) {
  const stats = await handle.stat();
  if (!stats.isFile()) failUntrusted(file, 'is not a file');
  // Undefined on Windows, which has no such users and modes.
  const ownUid = process.geteuid?.();
  if (ownUid === undefined) return;
  if (stats.uid !== ownUid && stats.uid !== ROOT_UID)
    failUntrusted(file, `belongs to another user (uid ${stats.uid})`);
  if ((stats.mode & constants.S_IROTH) !== 0)
    failUntrusted(file, 'can be read by every user of this machine');
  if ((stats.mode & constants.S_IWOTH) !== 0)
    failUntrusted(file, 'can be written by every user of this machine');
}

const ROOT_UID = 0;

function failUntrusted(file: string, problem: string): never {
  throw new DataDirError(
    `DATA_DIR: ${file} ${problem}. Remove it, and the next start creates a new one (logins in progress must start over), or set OAUTH_STATE_SECRET.`,
  );
}

/** Writes atomically: a file truncated by a crash would prevent every later start. */
async function createSecretFile(dataDir: string, file: string) {
  const secret = generateSecret();
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const draft = `${file}.${generateSecret().slice(0, 8)}`;
  const handle = await open(draft, 'wx', 0o600);
  try {
    await handle.writeFile(`${secret}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(draft, file);
  return secret;
}

// The seal for data that clients carry between replicas, and for messages between replicas.

/** A store that lost its data has a different secret, or none: replicas must not keep the old one for longer. */
const KEPT_MS = 60_000;

/** The seal of logins if there is one, otherwise one with a secret from the store. */
export function createReplicaSeal(
  sessionKeyPrefix: string,
  { store, clock }: { readonly store: KeyValue; readonly clock: Clock },
  loginSeal: Seal | undefined,
): () => Promise<Seal> {
  if (loginSeal !== undefined) return async () => loginSeal;
  let kept: { readonly seal: Seal; readonly at: number } | undefined;

  return async function getSeal() {
    if (kept !== undefined && clock.monotonic() - kept.at <= KEPT_MS) return kept.seal;
    let seal: Seal;
    try {
      // The secret shared by all replicas, created at first use.
      const key = buildSharedSecretKey(sessionKeyPrefix);
      const secret =
        (await store.get(key)) ?? (await store.getOrSet(key, generateSecret(), TEN_YEARS_SECONDS));
      seal = createSeal([secret]);
    } catch (error) {
      // The cached secret is still the best one available.
      if (kept === undefined) throw error;
      seal = kept.seal;
    }
    kept = { seal, at: clock.monotonic() };
    return seal;
  };
}

const TEN_YEARS_SECONDS = 315_360_000;
