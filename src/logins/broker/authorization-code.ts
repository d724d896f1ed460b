// RFC 6749 §4.1.3, RFC 7636: the grant type `authorization_code`: a client redeems its code for the gateway's own tokens.

import { fail } from '../../errors/gateway-error.ts';
import type { Reply } from '../../http/endpoint/message.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { Change } from '../../store/records.ts';
import type { Clients } from '../clients/clients.ts';
import { createGrantId, nameUser, type UserIdentity } from '../grants/grant.ts';
import type { GrantCode, UsedCode } from './login.ts';
import type { Broker } from './open-broker.ts';
import { coversResource, failTarget, readAskedPair } from './resources.ts';
import { failGrant, type GrantType, type TokenIssue } from './token.ts';

export function createAuthorizationCodeGrant(
  { runtime, codes, ends }: Broker,
  clients: Clients,
  { issueGrant, answer }: TokenIssue,
): GrantType {
  return async function redeemCode({ parameters }) {
    // RFC 6749 §4.1.3, RFC 7636 §4.5: the parameters.
    const request: CodeRequest = {
      code: parameters.require('code'),
      redirectUri: parameters.require('redirect_uri'),
      clientId: parameters.require('client_id'),
      verifier: parameters.require('code_verifier'),
      grantId: createGrantId(),
    };
    const { code, clientId } = request;
    const reading = codes.get(code);
    // Errors of the client come first.
    reading.catch(() => {});
    // RFC 6749 §3.2.1: the client is public, and must be known.
    const client = await clients.requireWithoutFetch(clientId);
    // RFC 6749 §3.3, RFC 8707 §2.2: the client may ask for a part of what its user granted.
    const asked = readAskedPair(parameters, clientId, runtime);
    const expected = decideCodeUse(await reading, request);
    if (expected.result === undefined) return failUnknownCode();
    // A code that was used twice has had all its effects: any stranger could send it.
    return 'value' in expected ? redeem : { runAnonymous: redeem };

    async function redeem(): Promise<Reply> {
      // RFC 6749 §4.1.2: the code is used up now, whatever follows; of simultaneous requests one is the first.
      const use =
        (await codes.update(code, (found) => decideCodeUse(found, request))) ?? failUnknownCode();
      if (use.kind === 'again') return endReused(use.grantId, use.user);
      const { issued, problem } = use;
      const { user, scopes, resources } = issued;
      try {
        // RFC 6749 §4.1.3, RFC 7636 §4.6: issued to this client, for this redirect URI and this verifier.
        if (problem !== undefined) failGrant(problem);
        // RFC 6749 §3.3, RFC 8707 §2.2: no more than was granted.
        if (asked.scopes?.some((one) => !scopes.includes(one))) fail('invalid_scope');
        if (asked.resources?.some((one) => !coversResource(resources, one, runtime))) failTarget();
      } catch (refusal) {
        // No grant results from it: the provider's tokens are revoked.
        void ends.revokeAtProviderInTurn(issued);
        throw refusal;
      }
      const { grantId } = request;
      const { claims, userinfoClaims, sid, provider } = issued;
      const granted = {
        id: grantId,
        user,
        claims,
        userinfoClaims,
        sid,
        provider,
        client: {
          id: clientId,
          name: issued.clientName,
          redirectHost: new URL(issued.redirectUri).host,
        },
        scopes,
        resources,
      };
      const grant = await issueGrant(granted, issued.logoutMark, ENDED_MEANWHILE, asked);
      // A second use marks the code before it ends the grant, which is stored by now: one of the two requests sees the other.
      const [used] = await Promise.all([codes.get(code), clients.recordUse(client)]).catch(
        (cause: unknown) => {
          // The client gets no tokens, and the code is used up.
          ends.endGrantSoon(grantId, 'unfinished').catch(() => {});
          throw cause;
        },
      );
      if (used !== undefined && 'usedFor' in used && used.wasUsedAgain)
        return endReused(grantId, user);
      // RFC 6749 §4.1.4.
      return answer(grant, grant.client.name ?? client.name, false);
    }

    /** RFC 6749 §4.1.2: the tokens of a code that was used twice are revoked, since either use may be the thief's. */
    async function endReused(grantId: string, user: UserIdentity): Promise<never> {
      await ends.endGrant(grantId, 'reuse');
      runtime.log.warn(
        'An authorization code was redeemed twice, the second time with its code_verifier. It may have been stolen, so the login has ended.',
        { ...nameUser(user), client: clientId, grant: grantId },
      );
      return fail('authorization_code_reused', { facts: { ...nameUser(user), grantId } });
    }
  };
}

export const ENDED_MEANWHILE = 'This login was ended while it was in progress. Log in again.';

interface CodeRequest {
  readonly code: string;
  readonly redirectUri: string;
  readonly clientId: string;
  readonly verifier: string;
  /** For the grant that the code becomes, if this is its first use. */
  readonly grantId: string;
}

type CodeUse =
  /**
   * `problem`: the caller cannot prove to be the code's client (client, redirect URI or verifier), and gets no tokens. The code is
   * used up all the same.
   */
  | { readonly kind: 'first'; readonly issued: GrantCode; readonly problem: string | undefined }
  /** A second use, by its client or somebody who knows everything that the client knows. */
  | { readonly kind: 'again'; readonly grantId: string; readonly user: UserIdentity };

/** Used codes are remembered for ten minutes, the longest that RFC 6749 §4.1.2 recommends for a code. */
const USED_SECONDS = 600;

/**
 * Determines what a use of a code does to its record. The result is undefined for a code that does not exist, and for a used one
 * that is sent by a client other than its own. RFC 6749 §4.1.2 and RFC 9700 §4.2.4 have the server revoke the tokens of the first
 * use, if possible. But a caller who has only seen the code, in a log or a browser history, could not have redeemed it, and so
 * raises no doubt about those tokens: otherwise any reader of a code could log its user out.
 */
function decideCodeUse(
  found: GrantCode | UsedCode | undefined,
  request: CodeRequest,
): Change<UsedCode, CodeUse | undefined> {
  if (found === undefined) return { result: undefined };
  const { clientId, redirectUri, codeChallenge, user } = found;
  const problem = findCodeProblem(found, request);
  const used = { clientId, redirectUri, codeChallenge, user };
  if (!('usedFor' in found)) {
    const value = { ...used, usedFor: request.grantId, wasUsedAgain: false };
    return { value, ttlSeconds: USED_SECONDS, result: { kind: 'first', issued: found, problem } };
  }
  if (problem !== undefined) return { result: undefined };
  const { usedFor, wasUsedAgain } = found;
  const result = { kind: 'again', grantId: usedFor, user } as const;
  if (wasUsedAgain) return { result };
  return { value: { ...used, usedFor, wasUsedAgain: true }, ttlSeconds: USED_SECONDS, result };
}

/** RFC 6749 §4.1.3: says in a sentence why the code was not issued to this caller. */
function findCodeProblem(
  issued: GrantCode | UsedCode,
  { clientId, redirectUri, verifier }: CodeRequest,
) {
  if (issued.clientId !== clientId) return 'The code was issued to another client.';
  if (issued.redirectUri !== redirectUri)
    return 'The redirect_uri does not match the one in the authorization request.';
  // RFC 7636 §4.6, with S256, the only method supported.
  return VERIFIER.test(verifier) && hashSha256(verifier) === issued.codeChallenge
    ? undefined
    : 'The code_verifier does not match the code_challenge.';
}

/** RFC 7636 §4.1. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;

const failUnknownCode = (): never =>
  failGrant('The code is unknown, has expired, or has already been used.');
