// RFC 6749 §4.1.3, RFC 7636 §4.6: a code that a client brings, and whether it is the one who may.
import { fail } from '../../errors/gateway-error.ts';
import { createCodeChallenge } from '../provider/provider-parameters.ts';
import type { RequestParameters } from '../request/parameters.ts';

export interface CodeRequest {
  readonly code: string;
  readonly redirectUri: string;
  readonly clientId: string;
  readonly verifier: string;
}

/** @throws GatewayError `oauth_invalid_request` for what is missing. */
export const readCodeRequest = (parameters: RequestParameters): CodeRequest => ({
  code: parameters.require('code'),
  redirectUri: parameters.require('redirect_uri'),
  clientId: parameters.require('client_id'),
  verifier: parameters.require('code_verifier'),
});

/** What a code was issued for. */
export interface IssuedCode {
  readonly clientId: string;
  readonly redirectUri: string;
  readonly codeChallenge: string;
}

/** @throws GatewayError `invalid_grant`. */
export function checkCode<Issued extends IssuedCode>(
  issued: Issued | undefined,
  { clientId, redirectUri, verifier }: CodeRequest,
): Issued {
  if (issued === undefined) {
    return failCode('The code is unknown, has expired, or has already been used.');
  }
  if (issued.clientId !== clientId) failCode('The code was issued to another client.');
  if (issued.redirectUri !== redirectUri) {
    failCode('The redirect_uri does not match the one in the authorization request.');
  }
  if (!verifyPkce(issued.codeChallenge, verifier)) {
    failCode('The code_verifier does not match the code_challenge.');
  }
  return issued;
}

/** RFC 7636 §4.1. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

/** RFC 7636 §4.6: whether the challenge was made from the verifier. */
const verifyPkce = (challenge: string, verifier: string): boolean =>
  VERIFIER.test(verifier) && createCodeChallenge(verifier) === challenge;

const failCode = (details: string): never => fail('invalid_grant', { details });
