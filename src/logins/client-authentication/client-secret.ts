// RFC 6749 §2.3.1: the secret of a client. The gateway knows its hash alone.
import { generateSecret, hashSha256, isEqualSecret } from '../../platform/ids.ts';

/** A hash without salt is as good as the secret is random: what people think up can be found by trial. */
export const MIN_SECRET_LENGTH = 32;
/** More characters are no secret, but a file. */
export const MAX_SECRET_LENGTH = 1024;

export const generateClientSecret = generateSecret;

/** As the configuration file has it: in hexadecimal, as other programs print it. */
export const hashForFile = (secret: string): string =>
  Buffer.from(hashSha256(secret), 'base64url').toString('hex');

/** As `MachineCredentials` has it. Undefined for what is no SHA-256 in hexadecimal. */
export const parseFileHash = (text: string): string | undefined =>
  /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex').toString('base64url') : undefined;

/** How long it takes says nothing, also where there is no such client. */
export const isSecretOf = (secret: string, hash: string | undefined): boolean =>
  isEqualSecret(hashSha256(secret), hash ?? NO_HASH) && hash !== undefined;

const NO_HASH = hashSha256('');
