// §13.1: how the provider identifies the user who logged in: an ID token, fully verified (OpenID Connect Core §3.1.3.7, §12.2).

import { catalogue } from '../../errors/catalogue.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type { UserIdentity } from '../grants/grant.ts';
import type { VerificationKey } from './jwk.ts';
import { cutFound, type FoundAndExpected, type ParsedToken } from './jws.ts';
import type { KeySet } from './key-set.ts';
import { describeMachineSubject, MACHINE_SUBJECT_PREFIX } from './machine-clients.ts';
import {
  checkAudience,
  checkExpiry,
  checkIssuedAt,
  checkIssuer,
  checkNotBefore,
  createReadToken,
  type ExpectedClaims,
  failClaim,
  nameMember,
  type ProviderTokenKind,
  type ProviderTokenRules,
  requireSigner,
} from './provider-token.ts';
import {
  type ForeignClaim,
  findForeignClaim,
  KEYCLOAK_TYPES,
  readSubject,
} from './token-verifier.ts';

export interface ExpectedIdToken {
  /** The value sent in the authorization request; undefined if there was none, as in a renewal. */
  readonly nonce: string | undefined;
  /** The access token that came with it, for `at_hash`. */
  readonly accessToken: string | undefined;
  /** In a renewal: the user that the login belongs to (OpenID Connect Core §12.2). */
  readonly earlier: UserIdentity | undefined;
}

/** As long as a token endpoint's response may be: the code that stores its claims determines how much of them to keep. */
const MAX_BYTES = 1_048_576;

/** @throws GatewayError always. */
function failIdToken(member: string, details: string, compared: FoundAndExpected): never {
  return fail('unusable_id_token', {
    details: `${catalogue.unusable_id_token.details} ${details}`,
    facts: { member, ...cutFound(compared) },
  });
}

const KIND: ProviderTokenKind = {
  name: 'ID token',
  form: {
    kind: 'an ID token',
    type: /^(application\/)?jwt$/i,
    types: 'JWT, or no typ',
    advice: {
      opaque: 'An ID token is one (OpenID Connect Core §2): look at what the provider answers.',
      encrypted: "Switch encryption of ID tokens off for the gateway's client at the provider.",
      signedBySecret:
        "Choose another signature algorithm for the ID tokens of the gateway's client at the provider.",
    },
  },
  maxBytes: MAX_BYTES,
  fail: failIdToken,
};

export type IdTokenVerifier = ReturnType<typeof createIdTokenVerifier>;

export function createIdTokenVerifier(clock: Clock, keySet: KeySet, rules: ProviderTokenRules) {
  const readToken = createReadToken(KIND);

  return {
    /**
     * @throws GatewayError `unusable_id_token`, whose facts are member, found and expected; `invalid_grant`, with the same facts,
     * if it belongs to another login; `key_set_unavailable`.
     */
    async verify(
      idToken: string,
      expected: ExpectedIdToken,
    ): Promise<JsonObject & Readonly<Record<'iss' | 'sub', string>>> {
      const { token, claims } = readToken(idToken);
      const signer = await requireSigner(KIND, token, keySet);
      const checks = { ...rules, ...expected, token, signer, now: clock.now() / 1000 };
      for (const check of CHECKS) check(KIND, claims, checks);
      const { issuer, baseUrl } = rules;
      const sub = nameMember(KIND, 'sub', () => readSubject(claims, baseUrl));
      if (sub.startsWith(MACHINE_SUBJECT_PREFIX)) {
        const details = describeMachineSubject('ID token', sub);
        failIdToken('sub', details, { found: sub, expected: 'a user' });
      }
      checkEarlierUser({ issuer, sub }, expected.earlier);
      return { ...claims, iss: issuer, sub };
    },
  };
}

interface Checks extends ExpectedClaims, ExpectedIdToken {
  readonly token: ParsedToken;
  readonly signer: VerificationKey;
}

type Check = (kind: ProviderTokenKind, claims: JsonObject, checks: Checks) => void;

/** Marks of other tokens that the provider signs with the same keys (RFC 8417 §2.2, Keycloak, Amazon Cognito). */
const FOREIGN_CLAIMS: readonly ForeignClaim[] = [
  { claim: 'events', kind: 'a security event or logout token' },
  { claim: 'typ', value: 'Bearer', kind: 'an access token' },
  ...KEYCLOAK_TYPES,
  { claim: 'token_use', value: 'access', kind: 'an access token' },
];

const checkKind: Check = (_kind, claims) => {
  const foreign = findForeignClaim(claims, FOREIGN_CLAIMS);
  if (foreign === undefined) return;
  const { claim, kind } = foreign;
  const { [claim]: found } = claims;
  const details = `It is ${kind}: its ${claim} claim is ${quote(found)}.`;
  failIdToken(claim, details, { found, expected: 'an ID token' });
};

const checkAuthorizedParty: Check = (kind, { aud, azp }, { clientId }) => {
  const isNeeded = Array.isArray(aud) && aud.length > 1;
  if (azp === clientId || (azp === undefined && !isNeeded)) return;
  failClaim(kind, 'azp', azp, {
    mustBe: `be ${quote(clientId)} (OAUTH_CLIENT_ID)`,
    expected: clientId,
  });
};

/** It binds the response to the login that this browser started: with any other value, the login must be started again. */
const checkNonce: Check = (_kind, { nonce }, { nonce: sent }) => {
  if (sent === undefined || nonce === sent) return;
  fail('invalid_grant', {
    details: 'The ID token belongs to another login.',
    facts: { member: 'nonce', ...cutFound({ found: nonce, expected: 'the nonce of this login' }) },
  });
};

/** OpenID Connect Core §3.1.3.6. */
const checkAccessTokenHash: Check = (_kind, { at_hash: found }, { accessToken, token, signer }) => {
  if (found === undefined || accessToken === undefined) return;
  const hash = token.algorithm.hash(accessToken, signer.key);
  const expected = hash.subarray(0, hash.length / 2).toString('base64url');
  if (found === expected) return;
  failIdToken(
    'at_hash',
    'The at_hash claim of the ID token is not the hash of the access token that came with it.',
    { found, expected: 'the hash of the access token' },
  );
};

/**
 * In the order they are reported. `acr` and `auth_time` only matter if they were requested, which the gateway never
 * does.
 */
const CHECKS: readonly Check[] = [
  checkKind,
  checkIssuer,
  checkAudience,
  checkAuthorizedParty,
  checkExpiry,
  checkIssuedAt,
  checkNotBefore,
  checkNonce,
  checkAccessTokenHash,
];

/** The same `sub` from another issuer is a different user (OpenID Connect Core §5.7). */
function checkEarlierUser(user: UserIdentity, earlier: UserIdentity | undefined) {
  if (earlier === undefined) return;
  for (const [member, found, expected] of [
    ['iss', user.issuer, earlier.issuer],
    ['sub', user.sub, earlier.sub],
  ] as const) {
    if (found !== expected)
      failIdToken(
        member,
        `The ${member} claim of the ID token is ${quote(found)}, and that of the login that it renews is ${quote(expected)}.`,
        { found, expected },
      );
  }
}
