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
  request: CodeRequest,
): Issued {
  if (issued === undefined) return failUnknownCode();
  const problem = findCodeProblem(issued, request);
  return problem === undefined ? issued : failCode(problem);
}

/** Why a request is not that of the client which the code was issued to, as a sentence. */
export function findCodeProblem(
  issued: IssuedCode,
  { clientId, redirectUri, verifier }: CodeRequest,
): string | undefined {
  if (issued.clientId !== clientId) return 'The code was issued to another client.';
  if (issued.redirectUri !== redirectUri) {
    return 'The redirect_uri does not match the one in the authorization request.';
  }
  return verifyPkce(issued.codeChallenge, verifier)
    ? undefined
    : 'The code_verifier does not match the code_challenge.';
}

/** @throws GatewayError always. */
export const failUnknownCode = (): never =>
  failCode('The code is unknown, has expired, or has already been used.');

/** RFC 7636 §4.1. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

/** RFC 7636 §4.6: whether the challenge was made from the verifier. */
const verifyPkce = (challenge: string, verifier: string): boolean =>
  VERIFIER.test(verifier) && createCodeChallenge(verifier) === challenge;

export const failCode = (details: string): never => fail('invalid_grant', { details });
