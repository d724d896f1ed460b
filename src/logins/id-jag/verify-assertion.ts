// RFC 7523 §3: an assertion is worth something once a key of its issuer has signed it.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import type { KeySet } from '../auth/key-set.ts';
import { createTokenParser, type ParsedToken } from '../auth/parse-token.ts';
import { findSigner, readPayload, verifySignature } from '../auth/token-verifier.ts';
import {
  type Assertion,
  type AssertionRules,
  failAs,
  failMember,
  ID_JAG,
  MAX_ASSERTION_BYTES,
  nameMember,
  readAssertion,
} from './assertion.ts';
import type { AssertionIssuers } from './assertion-issuers.ts';

/**
 * `clientId` is that of a client that has proved who it is. Whether the assertion was used before is not asked here.
 *
 * @throws GatewayError `unusable_assertion`, whose facts are member, found and expected; `assertion_keys_unavailable`.
 */
export type VerifyAssertion = (text: string, clientId: string) => Promise<Assertion>;

export interface VerifyAssertionDeps {
  readonly rules: AssertionRules;
  readonly issuers: Pick<AssertionIssuers, 'findKeySet' | 'names'>;
  readonly clock: Clock;
}

export function createVerifyAssertion({
  rules,
  issuers,
  clock,
}: VerifyAssertionDeps): VerifyAssertion {
  const parse = createTokenParser(MAX_ASSERTION_BYTES, ID_JAG);

  return async function verifyAssertion(text, clientId) {
    const token = nameMember('form', () => parse(text));
    const claims = nameMember('payload', () => readPayload(token));
    const keySet = issuers.findKeySet(claims.iss);
    if (keySet === undefined || typeof claims.iss !== 'string')
      return failMember('iss', claims.iss, `one of ID_JAG_ISSUERS: ${issuers.names.join(', ')}`);
    await checkSignature(token, keySet);
    const now = clock.now() / 1000;
    return readAssertion(claims, { ...rules, issuer: claims.iss, clientId, now });
  };
}

async function checkSignature(token: ParsedToken, keySet: KeySet): Promise<void> {
  try {
    await verifySignature(token, { keySet, findSigner });
  } catch (thrown) {
    if (!(thrown instanceof GatewayError) || thrown.row.status !== 503)
      return failAs('signature', thrown);
    const { cause } = thrown.failure;
    fail('assertion_keys_unavailable', { headers: { 'Retry-After': '2' }, cause });
  }
}
