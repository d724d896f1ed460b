// §4.7: what a grant was answered last. While that is fresh, a refresh gets it again: some clients refresh at every
// look at a session once an access token has less than five minutes left.
import { isOwnClient } from '../../auth/own-clients.ts';
import type { TokenInspection } from '../../auth/token-verifier.ts';
import type { KnownLogin } from '../../endpoint/endpoint.ts';
import { createJsonReply, type Reply } from '../../endpoint/message.ts';
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { buildOAuthKey, checkRecordVersion, RECORD_VERSION } from '../../store/keys.ts';
import { createSeal } from '../../store/seal/seal.ts';
import type { KeyValue } from '../../store/store.ts';
import { type AskedTokens, isSameRequest } from '../request/parameters.ts';
import { createKnownGrants, createKnownRefreshTokens, type KnownGrant } from './known-grants.ts';

export interface IssuedTokens {
  readonly asked: AskedTokens;
  /** Stays the same from refresh to refresh. */
  readonly grantId: string;
  /** The refresh token that was used up; undefined for a code. */
  readonly used: string | undefined;
  /** The members of the token response (RFC 6749 §5.1). */
  readonly tokens: Readonly<Record<string, unknown>>;
}

/** A token response as its client gets it. */
export interface RecalledAnswer {
  readonly reply: Reply;
  /** `sub` of the user, where the token names one. */
  readonly user: string | undefined;
}

export interface RecentAnswers {
  /** What is kept for the client's refresh token, be it fresh or not. */
  find(refreshToken: string, clientId: string): Promise<KeptAnswer | undefined>;
  /** Undefined unless it is fresh, of a grant that nobody ended, and what is asked for now. */
  recall(
    refreshToken: string,
    kept: KeptAnswer,
    asked: AskedTokens,
  ): Promise<RecalledAnswer | undefined>;
  /** Never rejects: without it the next refresh is one more. */
  keep(issued: IssuedTokens): Promise<void>;
  /** Whether this process knows the token, without a look at the store. */
  findKnownId(refreshToken: string, clientId: string): string | undefined;
  /** Whose current refresh token this is; undefined for any other. Without effect. */
  findLogin(refreshToken: string, asked: AskedTokens): Promise<KnownLogin | undefined>;
  /** Of a refresh or access token. Never rejects. */
  findGrant(token: string): Promise<KnownGrant | undefined>;
  /** Nothing of this grant is given again. */
  end(grantId: string): Promise<void>;
  /**
   * The provider refused a refresh. If it is for good, the grant may have ended there: because of a token that was used
   * twice, say. Never rejects. Tokens of no known grant end nothing: made-up ones must not fill the store.
   */
  endAfterRefusal(grantId: string | undefined, status: number): Promise<void>;
}

/** Sealed with the refresh token itself, so that nobody who reads the store can open it. */
export interface KeptAnswer {
  readonly version: number;
  readonly asked: AskedTokens;
  readonly grantId: string;
  readonly tokens: Readonly<Record<string, unknown>>;
  /** Epoch milliseconds. */
  readonly issuedAt: number;
  readonly lifetimeSeconds: number;
  /** Whether the client had another refresh token given in place of this one. */
  readonly isReplaced: boolean;
  /** Hash of the refresh token that this one took the place of. */
  readonly predecessor: string | undefined;
}

const MAX_AGE_SECONDS = 300;
/**
 * Of the token that was replaced: a client that lost the answer comes again within this time. No longer, since a thief
 * who has that token comes by the next one in it.
 */
const MAX_REPLACED_AGE_SECONDS = 10;

interface FreshToken extends Pick<RecalledAnswer, 'user'> {
  readonly secondsLeft: number;
}

export interface RecentAnswersDeps {
  readonly store: KeyValue;
  readonly clock: Clock;
  /** What the gateway would say of an access token, its signature aside. */
  readonly inspectToken: (token: string) => TokenInspection;
}

export function createRecentAnswers(deps: RecentAnswersDeps): RecentAnswers {
  const { store, clock, inspectToken } = deps;
  const grants = createKnownGrants(store, MAX_AGE_SECONDS);
  const knownTokens = createKnownRefreshTokens();

  /** Its client has the answer: the token before is of use to nobody but a thief. */
  async function endPredecessor(hash: string): Promise<void> {
    const key = buildUsedKey(hash);
    if ((await store.get(key)) === undefined) await store.set(key, '1', MAX_AGE_SECONDS);
  }

  async function find(refreshToken: string, clientId: string): Promise<KeptAnswer | undefined> {
    const key = buildAnswerKey(hashSha256(refreshToken));
    const sealed = await store.get(key);
    const text = sealed === undefined ? undefined : createSeal([refreshToken]).open(key, sealed);
    if (text === undefined) return undefined;
    const kept = JSON.parse(text) as KeptAnswer;
    checkRecordVersion(kept.version, 'The last answer of a grant');
    return kept.asked.clientId === clientId ? kept : undefined;
  }

  async function keepAnswer(token: string, hash: string, answer: KeptAnswer): Promise<void> {
    const key = buildAnswerKey(hash);
    const sealed = createSeal([token]).seal(key, JSON.stringify(answer));
    await store.set(key, sealed, computeTtlSeconds(answer));
  }

  /** Of the access token; undefined where the answer is not to be given again. */
  async function findFreshToken(
    refreshToken: string,
    kept: KeptAnswer,
    asked: AskedTokens,
  ): Promise<FreshToken | undefined> {
    // They renew when they have to, also because a token was refused, and then want another one.
    if (isOwnClient(asked.clientId)) return undefined;
    const secondsLeft = computeSecondsLeft(kept, clock.now());
    if (secondsLeft === undefined || !isSameRequest(kept.asked, asked)) return undefined;
    // Its client comes because /mcp refuses it, perhaps: only the provider can help there.
    const { access_token: access } = kept.tokens;
    if (typeof access !== 'string') return undefined;
    const { sub: user, problem } = inspectToken(access);
    if (problem) return undefined;
    const [isEnded, used] = await Promise.all([
      grants.isEnded(kept.grantId),
      store.get(buildUsedKey(hashSha256(refreshToken))),
    ]);
    return isEnded || used !== undefined ? undefined : { secondsLeft, user };
  }

  return {
    find,
    findKnownId: knownTokens.find,
    async findLogin(refreshToken, asked) {
      const [grant, kept] = await Promise.all([
        grants.find(hashSha256(refreshToken)),
        find(refreshToken, asked.clientId),
      ]);
      // Whoever brings one that was replaced, or another's, must not use up what the login has.
      if (!grant || grant.isReplaced || grant.clientId !== asked.clientId) {
        knownTokens.remove(refreshToken, asked.clientId);
        return undefined;
      }
      knownTokens.add(refreshToken, asked.clientId, grant.grantId);
      const fresh = kept && (await findFreshToken(refreshToken, kept, asked));
      return { id: grant.grantId, isAnswered: fresh !== undefined };
    },
    async recall(refreshToken, kept, asked) {
      const { predecessor } = kept;
      if (predecessor !== undefined) await endPredecessor(predecessor);
      const fresh = await findFreshToken(refreshToken, kept, asked);
      if (fresh === undefined) return undefined;
      const tokens = { ...kept.tokens, expires_in: fresh.secondsLeft };
      return {
        reply: createJsonReply(200, tokens, { 'Cache-Control': 'no-store' }),
        user: fresh.user,
      };
    },
    async keep(issued) {
      const current = getCurrentToken(issued);
      if (current !== undefined) knownTokens.add(current, issued.asked.clientId, issued.grantId);
      const answers = buildAnswers(issued, clock.now());
      const keeping = listGrants(issued).flatMap(({ token, grant, isCurrent }) => {
        const hash = hashSha256(token);
        const answer = answers.get(token);
        return [
          grants.keep(hash, grant, isCurrent),
          ...(answer ? [keepAnswer(token, hash, answer)] : []),
        ];
      });
      await Promise.all(keeping).catch(() => {});
    },
    findGrant: (token) => grants.find(hashSha256(token)).catch(() => undefined),
    end: grants.end,
    async endAfterRefusal(grantId, status) {
      if (grantId === undefined || status >= 500 || status === 429) return;
      await grants.end(grantId).catch(() => {});
    },
  };
}

/** By the refresh token that the client has from now on, and by the one that it used. */
function buildAnswers(issued: IssuedTokens, now: number): ReadonlyMap<string, KeptAnswer> {
  const { asked, grantId, used, tokens } = issued;
  const { access_token: access, expires_in: lifetimeSeconds } = tokens;
  const current = getCurrentToken(issued);
  if (current === undefined || typeof access !== 'string') return new Map();
  if (typeof lifetimeSeconds !== 'number') return new Map();
  if (!(computeTtlSeconds({ lifetimeSeconds }) >= 1)) return new Map();
  const isReplacement = used !== undefined && used !== current;
  const answer: KeptAnswer = {
    version: RECORD_VERSION,
    asked,
    grantId,
    tokens: { ...tokens, ...(used !== undefined && { refresh_token: current }) },
    issuedAt: now,
    lifetimeSeconds,
    isReplaced: false,
    predecessor: isReplacement ? hashSha256(used) : undefined,
  };
  return new Map([
    [current, answer],
    ...(isReplacement
      ? [[used, { ...answer, isReplaced: true, predecessor: undefined }] as const]
      : []),
  ]);
}

const computeTtlSeconds = ({ lifetimeSeconds }: Pick<KeptAnswer, 'lifetimeSeconds'>): number =>
  Math.min(MAX_AGE_SECONDS, Math.floor(lifetimeSeconds / 2));

/** The refresh token that the client has from now on. */
const getCurrentToken = ({ used, tokens: { refresh_token: issued } }: IssuedTokens) =>
  typeof issued === 'string' ? issued : used;

/** Every token that names the grant from now on, whether its answer is kept or not. */
function listGrants(issued: IssuedTokens) {
  const { grantId, used, tokens } = issued;
  const { clientId } = issued.asked;
  const current = getCurrentToken(issued);
  return [...new Set([used, current, tokens.access_token])]
    .filter((token) => typeof token === 'string')
    .map((token) => {
      const isReplaced = token === used && token !== current;
      return { token, grant: { grantId, clientId, isReplaced }, isCurrent: token === current };
    });
}

/** Of the access token, in whole seconds; undefined once the answer is not fresh any more. */
function computeSecondsLeft(
  { issuedAt, lifetimeSeconds, isReplaced }: KeptAnswer,
  now: number,
): number | undefined {
  // Clocks of replicas differ.
  const age = Math.max(0, (now - issuedAt) / 1000);
  const maxAge = isReplaced ? MAX_REPLACED_AGE_SECONDS : MAX_AGE_SECONDS;
  const isFresh = age <= maxAge && age < lifetimeSeconds / 2;
  return isFresh ? Math.floor(lifetimeSeconds - age) : undefined;
}

const buildAnswerKey = (hash: string): string => buildOAuthKey('recent-answer', hash);

/** Of a token that was replaced, and whose client has the next one. */
const buildUsedKey = (hash: string): string => buildOAuthKey('recent-used', hash);
