// §5.11: who logged in, and what the provider says of them: in the ID token, and where that lacks something, at userinfo.
import { findClaim } from '../../auth/claim-path.ts';
import type { VerifyIdToken } from '../../auth/id-token.ts';
import type { ProviderMetadata } from '../../auth/provider-metadata.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import { type Fetch, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { type JsonObject, parseObject } from '../../platform/json.ts';
import type { Log } from '../../platform/log.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Identity, ReadIdentity } from '../gateway-tokens/provider-login.ts';

export interface ReadIdentityDeps {
  readonly verifyIdToken: VerifyIdToken;
  readonly metadata: ProviderMetadata;
  /** Claims that the settings name: where the ID token lacks one, userinfo is asked. */
  readonly namedClaims: readonly string[];
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly log: Log;
}

const LIMITS = { timeoutMs: 10_000, maxBytes: 65_536 };
/** Of all claims, as JSON. */
const MAX_CLAIMS_BYTES = 16_384;

export function createReadIdentity(deps: ReadIdentityDeps): ReadIdentity {
  const { verifyIdToken, metadata, namedClaims, fetch, clock, log } = deps;
  const warnOfMissing = createWarnThrottle(clock, (claims: string) =>
    log.warn(
      'The provider names claims at a login that it leaves out when the login is renewed. They keep the value that they had.',
      { claims },
    ),
  );

  /** Undefined where the provider has no such endpoint. */
  async function fetchUserinfo(accessToken: string): Promise<JsonObject | undefined> {
    const url = (await metadata.get().catch(() => undefined))?.userinfo_endpoint;
    if (url === undefined) return undefined;
    const headers = { Accept: 'application/json', Authorization: `Bearer ${accessToken}` };
    const { status, body } = await fetchWithLimits(fetch, url, { headers }, LIMITS).catch(
      (cause: unknown) => fail('upstream_failed', { cause }),
    );
    const claims = status === 200 ? parseObject(body) : undefined;
    return (
      claims ??
      fail('upstream_failed', {
        details: `The identity provider's userinfo endpoint answered ${status}${status === 200 ? ', and no JSON object' : ''}.`,
      })
    );
  }

  return async function readIdentity(answer, { nonce, earlier }) {
    const accessToken = readText(answer.access_token);
    const idToken = readText(answer.id_token);
    // OpenID Connect Core §12.2: a renewal may come without one.
    if (idToken === undefined && earlier === undefined) {
      fail('unusable_identity', {
        details:
          "The identity provider's answer has no ID token, so it does not say who logged in. Does its client allow the scope openid?",
      });
    }
    const fromIdToken =
      idToken === undefined ? undefined : await verifyIdToken(idToken, { nonce, accessToken });
    const lacks = (name: string) => findClaim(fromIdToken ?? {}, name) === undefined;
    const isUserinfoNeeded = fromIdToken === undefined || namedClaims.some(lacks);
    const userinfo =
      isUserinfoNeeded && accessToken !== undefined ? await fetchUserinfo(accessToken) : undefined;
    const sub = fromIdToken?.sub ?? earlier?.user.sub ?? '';
    // OpenID Connect Core §5.3.2: else it speaks of somebody else.
    if (userinfo !== undefined && userinfo.sub !== sub) failMismatch(userinfo.sub, sub);
    const issuer = fromIdToken?.iss ?? earlier?.user.issuer ?? metadata.issuer;
    if (earlier !== undefined && (earlier.user.sub !== sub || earlier.user.issuer !== issuer)) {
      failMismatch(sub, earlier.user.sub);
    }
    const told: JsonObject = { ...userinfo, ...fromIdToken };
    const claims = earlier === undefined ? told : keepMissing(earlier.claims, told);
    checkSize(claims);
    return createIdentity({ issuer, sub }, claims, fromIdToken?.sid);
  };

  function keepMissing(earlier: JsonObject, told: JsonObject): JsonObject {
    const missing = namedClaims.filter(
      (name) => findClaim(told, name) === undefined && findClaim(earlier, name) !== undefined,
    );
    if (missing.length > 0) warnOfMissing(missing.join(', '));
    return { ...earlier, ...told };
  }
}

const createIdentity = (user: Identity['user'], claims: JsonObject, sid: unknown): Identity => ({
  user,
  claims,
  ...(typeof sid === 'string' && { sid }),
});

const readText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

const failMismatch = (found: unknown, expected: string): never =>
  fail('unusable_identity', {
    details: "The identity provider's answers speak of two different users.",
    facts: { found, expected },
  });

function checkSize(claims: JsonObject): void {
  const bytes = Buffer.byteLength(JSON.stringify(claims));
  if (bytes <= MAX_CLAIMS_BYTES) return;
  const [largest] = Object.entries(claims)
    .map(([name, value]) => ({ name, bytes: Buffer.byteLength(JSON.stringify(value) ?? '') }))
    .sort((one, other) => other.bytes - one.bytes);
  fail('unusable_identity', {
    details: `The identity provider says too much of this user: ${bytes} bytes of claims, and at most ${MAX_CLAIMS_BYTES} are kept. The largest is ${largest?.name} (${largest?.bytes} bytes). Have the provider leave it out, or name fewer groups.`,
  });
}
