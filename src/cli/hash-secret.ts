// `postern clients hash`: hashes the secret of a client that authenticates as itself, for the configuration file.
import {
  hashForFile,
  MAX_SECRET_LENGTH,
  MIN_SECRET_LENGTH,
} from '../logins/client-authentication/machine-client-shape.ts';
import { generateSecret } from '../platform/ids.ts';

import { UsageError } from './command-line/errors.ts';
import type { Flags, Invocation, Texts } from './command-line/invocation.ts';
import { readSecretOption } from './command-line/read-input.ts';

/** @throws UsageError */
export async function hashSecret(
  { secret: value, secretFile: file, json }: Texts<'secret' | 'secretFile'> & Flags<'json'>,
  { process, console }: Invocation,
): Promise<void> {
  const given = await readSecretOption('--secret', value, file, process);
  const secret = given === undefined ? generateSecret() : requireRandom(given);
  const secretSha256 = hashForFile(secret);
  // A secret given by the user is not printed.
  const shown = given === undefined ? { secret, secretSha256 } : { secretSha256 };
  if (json) return console.log(JSON.stringify(shown));
  if (given === undefined)
    console.log(`Secret, only for the client. It is shown once:\n  ${secret}\n`);
  console.log(`For the configuration file:\n  "secretSha256": "${secretSha256}"`);
}

/** Requires a random secret: its hash has no salt, so a guessable secret could be found by brute force. */
function requireRandom(secret: string) {
  if (secret.length < MIN_SECRET_LENGTH)
    throw new UsageError(
      `The secret has ${secret.length} characters. It must be random, with at least ${MIN_SECRET_LENGTH}: postern clients hash, without --secret, generates one.`,
    );
  if (secret.length > MAX_SECRET_LENGTH || !/^[\x21-\x7e]+$/.test(secret))
    throw new UsageError(
      `The secret must be at most ${MAX_SECRET_LENGTH} printable ASCII characters, without spaces.`,
    );
  return secret;
}
