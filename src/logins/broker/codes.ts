// RFC 6749 §4.1.2, §4.1.3: codes of the gateway's own, which clients redeem for its tokens. Each is used once, and a second use is known
// for what it is.

import { fail } from '../../errors/gateway-error.ts';
import type { JudgedRequest } from '../../http/endpoint/endpoint.ts';
import type { Reply } from '../../http/endpoint/message.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import { type Change, createSecretRecords } from '../../store/records.ts';
import type { Clients } from '../clients/clients.ts';
import { createGrantId, type Grant, nameUser, type UserIdentity } from '../grants/grant.ts';
import { createCodeChallenge } from '../provider/provider-parameters.ts';
import { readAskedPair } from './decide-refresh.ts';
import { failGrant, type TokenIssue } from './issue-grant.ts';
import type { Login } from './login.ts';
import type { Broker } from './open-broker.ts';
import { coversResource, failTarget } from './resources.ts';
import type { BrokerRuntime } from './runtime.ts';

// RFC 6749 §4.1.3: a client redeems its code.

export function createRedeemCode(
  { runtime, ends }: Broker,
  clients: Clients,
  codes: Codes,
  { issueGrant, answer }: TokenIssue,
) {
  return async function redeemCode(parameters: RequestParameters): Promise<JudgedRequest> {
    const request: CodeRequest = {
      code: parameters.require('code'),
      redirectUri: parameters.require('redirect_uri'),
      clientId: parameters.require('client_id'),
      verifier: parameters.require('code_verifier'),
    };
    const looking = codes.isSpent(request);
    // An error of the client is told first.
    looking.catch(() => {});
    const client = await clients.requireWithoutFetch(request.clientId);
    const asked = readAskedPair(parameters, client, runtime);
    return (await looking) ? { runAnonymous: redeem } : redeem;

    async function redeem(): Promise<Reply> {
      const use = await codes.use(request);
      if (use.kind === 'again') return endReused(use.grantId, use.user, request.clientId);
      const { code, grantId, problem } = use;
      const { user, scopes, resources, redirectUri } = code;
      try {
        if (problem !== undefined) failGrant(problem);
        if (asked.scopes?.some((one) => !scopes.includes(one))) fail('invalid_scope');
        if (asked.resources?.some((one) => !coversResource(resources, one, runtime))) failTarget();
      } catch (refusal) {
        // It comes to no grant: what the provider gave for it is nobody's then.
        void ends.tellProviderInTurn(code);
        throw refusal;
      }
      const granted = {
        id: grantId,
        user,
        claims: code.claims,
        userinfoClaims: code.userinfoClaims,
        sid: code.sid,
        provider: code.provider,
        client: {
          id: code.clientId,
          name: code.clientName,
          redirectHost: new URL(redirectUri).host,
        },
        scopes,
        resources,
      };
      const grant = await issueGrant(granted, code.logoutMark, ENDED_MEANWHILE, asked);
      // Whoever comes again leaves a mark before ending the grant, which stands by now: one of the two sees the other.
      const [wasUsedAgain] = await Promise.all([
        codes.wasUsedAgain(request.code),
        clients.recordUse(client),
      ]).catch((cause: unknown) => {
        // Its client hears of no tokens, and the code is used up.
        ends.endGrantSoon(grantId, 'unfinished').catch(() => {});
        throw cause;
      });
      if (wasUsedAgain) return endReused(grantId, user, request.clientId);
      return answer(grant, grant.client.name ?? client.name, false);
    }
  };

  /** RFC 6749 §4.1.2: whose of the two the tokens are, nobody can tell. */
  async function endReused(grantId: string, user: UserIdentity, client: string): Promise<never> {
    await ends.endGrant(grantId, 'reuse');
    runtime.log.warn(
      'An authorization code was used twice by whoever has its code_verifier. It may have been stolen, so the login has ended.',
      { ...nameUser(user), client, grant: grantId },
    );
    return fail('authorization_code_reused', { facts: { ...nameUser(user), grantId } });
  }
}

export const ENDED_MEANWHILE =
  'All logins like this one were ended while it was under way. Log in again.';

// The codes, in the store.

/** A code stands for it, and it is found by the code. */
interface GrantCode
  extends Pick<Login, 'clientId' | 'clientName' | 'redirectUri' | 'codeChallenge' | 'logoutMark'>,
    Pick<
      Grant,
      'scopes' | 'resources' | 'user' | 'claims' | 'userinfoClaims' | 'sid' | 'provider'
    > {}

type CodeUse =
  /** The code is used up. `problem`: it was not brought by its client, which gets no tokens for it, either. */
  | {
      readonly kind: 'first';
      readonly code: GrantCode;
      /** The id of the grant that it comes to. */
      readonly grantId: string;
      readonly problem: string | undefined;
    }
  /** Used by its client, or somebody who has all that the client had. */
  | { readonly kind: 'again'; readonly grantId: string; readonly user: UserIdentity };

export type Codes = ReturnType<typeof createCodes>;

/** The rest of a code that was used: nothing that the provider said or gave. */
interface UsedCode extends IssuedCode {
  readonly usedFor: string;
  readonly user: UserIdentity;
  readonly wasUsedAgain: boolean;
}

/** For the client to redeem it. */
const CODE_SECONDS = 60;
/** For one that was used: as long as RFC 6749 §4.1.2 lets a code live at most. */
const USED_SECONDS = 600;

export function createCodes(runtime: BrokerRuntime) {
  const codes = createSecretRecords<GrantCode | UsedCode>(runtime, 'grant-code', CODE_SECONDS);

  return {
    issue: (code: GrantCode) => codes.put(code),
    /**
     * Without effect: whether all came of the code that can, a first use and a second one.
     *
     * @throws GatewayError `invalid_grant` where `use` would throw it.
     */
    async isSpent(request: CodeRequest) {
      const found = await codes.get(request.code);
      if (found === undefined) return failUnknownCode();
      if (!('usedFor' in found)) return false;
      return findCodeProblem(found, request) === undefined ? found.wasUsedAgain : failUnknownCode();
    },
    /**
     * One of many at the same moment is the first.
     *
     * @throws GatewayError `invalid_grant` for a code that there is none of, and for one that was used where whoever brings
     * it is not its client. RFC 6749 and RFC 9700 §4.2.4 have the server revoke, if it can, what the first use got. But who
     * has seen the code alone, in a log or a history, could never have used it, and so cannot be the reason to doubt those
     * tokens: else anybody who reads a code could log its user out.
     */
    async use(request: CodeRequest): Promise<CodeUse> {
      const use = await codes.update(
        request.code,
        (found): Change<UsedCode, CodeUse | undefined> => {
          if (found === undefined) return { result: undefined };
          const { clientId, redirectUri, codeChallenge, user } = found;
          const used = { clientId, redirectUri, codeChallenge, user };
          const problem = findCodeProblem(found, request);
          if ('usedFor' in found) {
            if (problem !== undefined) return { result: undefined };
            const { usedFor, wasUsedAgain } = found;
            const result = { kind: 'again', grantId: usedFor, user } as const;
            const value = { ...used, usedFor, wasUsedAgain: true };
            return wasUsedAgain ? { result } : { value, ttlSeconds: USED_SECONDS, result };
          }
          const usedFor = createGrantId();
          const result = { kind: 'first', code: found, grantId: usedFor, problem } as const;
          const value = { ...used, usedFor, wasUsedAgain: false };
          return { value, ttlSeconds: USED_SECONDS, result };
        },
      );
      return use ?? failUnknownCode();
    },
    /** Asked by the first user once the grant is in the store: whoever came again before that could not end it. */
    async wasUsedAgain(code: string) {
      const found = await codes.get(code);
      return found !== undefined && 'usedFor' in found && found.wasUsedAgain;
    },
  };
}

// RFC 6749 §4.1.3, RFC 7636 §4.6: whether whoever brings a code is the client that it was issued to.

interface CodeRequest {
  readonly code: string;
  readonly redirectUri: string;
  readonly clientId: string;
  readonly verifier: string;
}

/** A code was issued for it. */
type IssuedCode = Pick<Login, 'clientId' | 'redirectUri' | 'codeChallenge'>;

/** Why a request is not that of the client which the code was issued to, as a sentence. */
function findCodeProblem(issued: IssuedCode, { clientId, redirectUri, verifier }: CodeRequest) {
  if (issued.clientId !== clientId) return 'The code was issued to another client.';
  if (issued.redirectUri !== redirectUri)
    return 'The redirect_uri does not match the one in the authorization request.';
  // RFC 7636 §4.6: the challenge was made from the verifier.
  return VERIFIER.test(verifier) && createCodeChallenge(verifier) === issued.codeChallenge
    ? undefined
    : 'The code_verifier does not match the code_challenge.';
}

const failUnknownCode = (): never =>
  failGrant('The code is unknown, has expired, or has already been used.');

/** RFC 7636 §4.1. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;
