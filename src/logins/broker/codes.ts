// RFC 6749 §4.1.2: codes of the gateway's own. Each is used once, and a second use is known for what it is.
import { fail } from '../../errors/gateway-error.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import { type Change, createSecretRecords, type SealedStore } from '../../store/records.ts';
import { createGrantId, type Grant, type UserIdentity } from '../grants/grant.ts';
import { createCodeChallenge } from '../provider/provider-parameters.ts';
import type { Login } from './redirect-to-provider.ts';

/** What a code stands for; found by the code. */
export interface GrantCode
  extends Pick<Login, 'clientId' | 'clientName' | 'redirectUri' | 'codeChallenge' | 'logoutMark'>,
    Pick<
      Grant,
      'scopes' | 'resources' | 'user' | 'claims' | 'userinfoClaims' | 'sid' | 'provider'
    > {}

export type CodeUse =
  /** The code is used up. `problem`: it was not brought by its client, which gets no tokens for it, either. */
  | {
      readonly kind: 'first';
      readonly code: GrantCode;
      /** Of the grant that it comes to. */
      readonly grantId: string;
      readonly problem: string | undefined;
    }
  /** By its client, or somebody who has all that the client had. */
  | { readonly kind: 'again'; readonly grantId: string; readonly user: UserIdentity };

export interface Codes {
  issue(code: GrantCode): Promise<string>;
  /**
   * Without effect: whether all came of the code that can, a first use and a second one.
   *
   * @throws GatewayError `invalid_grant` where `use` would throw it.
   */
  isSpent(request: CodeRequest): Promise<boolean>;
  /**
   * One of many at the same moment is the first.
   *
   * @throws GatewayError `invalid_grant` for a code that there is none of, and for one that was used where whoever brings
   * it is not its client. RFC 6749 and RFC 9700 §4.2.4 have the server revoke, if it can, what the first use got. But who
   * has seen the code alone, in a log or a history, could never have used it, and so cannot be the reason to doubt those
   * tokens: else anybody who reads a code could log its user out.
   */
  use(request: CodeRequest): Promise<CodeUse>;
  /** Asked by the first user once the grant is in the store: whoever came again before that could not end it. */
  wasUsedAgain(code: string): Promise<boolean>;
}

/** What is left of a code that was used: nothing that the provider said or gave. */
interface UsedCode extends IssuedCode {
  readonly usedFor: string;
  readonly user: UserIdentity;
  readonly wasUsedAgain: boolean;
}

/** Of a code, until its client redeems it. */
const CODE_SECONDS = 60;
/** Of one that was used: as long as RFC 6749 §4.1.2 lets a code live at most. */
const USED_SECONDS = 600;

export function createCodes(records: SealedStore): Codes {
  const codes = createSecretRecords<GrantCode | UsedCode>(records, 'grant-code', CODE_SECONDS);

  return {
    issue: codes.put,
    async isSpent(request) {
      const found = await codes.get(request.code);
      if (found === undefined) return failUnknownCode();
      if (!('usedFor' in found)) return false;
      return findCodeProblem(found, request) === undefined ? found.wasUsedAgain : failUnknownCode();
    },
    async use(request) {
      const use = await codes.update(
        request.code,
        (found): Change<UsedCode, CodeUse | undefined> => {
          if (found === undefined) return { result: undefined };
          const { clientId, redirectUri, codeChallenge, user } = found;
          const ttlSeconds = USED_SECONDS;
          const used = { clientId, redirectUri, codeChallenge, user };
          const problem = findCodeProblem(found, request);
          if ('usedFor' in found) {
            if (problem !== undefined) return { result: undefined };
            const result = { kind: 'again', grantId: found.usedFor, user } as const;
            return found.wasUsedAgain
              ? { result }
              : {
                  value: { ...used, usedFor: found.usedFor, wasUsedAgain: true },
                  ttlSeconds,
                  result,
                };
          }
          const usedFor = createGrantId();
          const result = { kind: 'first', code: found, grantId: usedFor, problem } as const;
          return { value: { ...used, usedFor, wasUsedAgain: false }, ttlSeconds, result };
        },
      );
      return use ?? failUnknownCode();
    },
    async wasUsedAgain(code) {
      const found = await codes.get(code);
      return found !== undefined && 'usedFor' in found && found.wasUsedAgain;
    },
  };
}

// RFC 6749 §4.1.3, RFC 7636 §4.6: whether whoever brings a code is the client that it was issued to.

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
interface IssuedCode {
  readonly clientId: string;
  readonly redirectUri: string;
  readonly codeChallenge: string;
}

/** Why a request is not that of the client which the code was issued to, as a sentence. */
function findCodeProblem(
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

const failUnknownCode = (): never =>
  failCode('The code is unknown, has expired, or has already been used.');

/** RFC 7636 §4.1. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

/** RFC 7636 §4.6: whether the challenge was made from the verifier. */
const verifyPkce = (challenge: string, verifier: string): boolean =>
  VERIFIER.test(verifier) && createCodeChallenge(verifier) === challenge;

/** @throws GatewayError `invalid_grant`, always. */
export const failCode = (details: string): never => fail('invalid_grant', { details });
