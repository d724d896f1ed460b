// RFC 7636: Proof Key for Code Exchange, with S256 alone.
import { hashSha256 } from '../../platform/sha256.ts';

/** RFC 7636 §4.1. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;
/** RFC 7636 §4.2: base64url of a SHA-256 hash. */
const CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

export const isCodeChallenge = (text: string): boolean => CHALLENGE.test(text);

export const createCodeChallenge = (verifier: string): string => hashSha256(verifier);

/** RFC 7636 §4.6: whether the challenge was made from the verifier. */
export const verifyPkce = (challenge: string, verifier: string): boolean =>
  VERIFIER.test(verifier) && createCodeChallenge(verifier) === challenge;
