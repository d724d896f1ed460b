// §4.7: what a grant was answered last. While that is fresh, a refresh gets it again: some clients refresh at every
// look at a session once an access token has less than five minutes left.
import type { Clock } from '../../../core/clock.ts';
import { createSeal } from '../../../core/seal/seal.ts';
import { hashSha256 } from '../../../core/sha256.ts';
import { buildOAuthKey } from '../../../core/store/keys.ts';
import { checkRecordVersion, RECORD_VERSION } from '../../../core/store/record-version.ts';
import type { Store } from '../../../core/store/store.ts';
import type { RequestParameters } from '../request/parameters.ts';

/** What a client asked for. Whoever asks for anything else gets an answer of its own. */
export interface AskedTokens {
  readonly clientId: string;
  /** As it was sent. */
  readonly scope: string | undefined;
  /** RFC 8707, as they were sent. */
  readonly resources: readonly string[];
}

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
  readonly status: 200;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
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
  /** No answer with this refresh or access token is given again. */
  end(token: string): Promise<void>;
  /**
   * The provider refused a refresh. If it is for good, the grant may have ended there: because of a token that was used
   * twice, say. Never rejects.
   */
  endAfterRefusal(refreshToken: string, status: number): Promise<void>;
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
  /** Hashes of every token of this answer, and of the refresh token that it was given for. */
  readonly hashes: readonly string[];
}

const MAX_AGE_SECONDS = 300;
/** Of the token that was replaced: a client that lost the answer comes again within this time. */
const MAX_REPLACED_AGE_SECONDS = 60;

export function createRecentAnswers(store: Store, clock: Clock): RecentAnswers {
  /** Its client has the answer: the token before is of use to nobody but a thief. */
  async function endPredecessor(hash: string): Promise<void> {
    const key = buildEndKey(hash, 'used');
    if ((await store.get(key)) === undefined) await store.set(key, '1', MAX_AGE_SECONDS);
  }

  const end = (token: string): Promise<void> =>
    store.set(buildEndKey(hashSha256(token), 'ended'), '1', MAX_AGE_SECONDS);

  return {
    async find(refreshToken, clientId) {
      const key = buildAnswerKey(hashSha256(refreshToken));
      const sealed = await store.get(key);
      const text = sealed === undefined ? undefined : createSeal([refreshToken]).open(key, sealed);
      if (text === undefined) return undefined;
      const kept = JSON.parse(text) as KeptAnswer;
      checkRecordVersion(kept.version, 'The last answer of a grant');
      return kept.asked.clientId === clientId ? kept : undefined;
    },
    async recall(refreshToken, kept, asked) {
      const { predecessor, hashes } = kept;
      if (predecessor !== undefined) await endPredecessor(predecessor);
      const secondsLeft = computeSecondsLeft(kept, clock.now());
      if (secondsLeft === undefined || !isSameRequest(kept.asked, asked)) return undefined;
      const ends = [
        ...hashes.map((hash) => buildEndKey(hash, 'ended')),
        buildEndKey(hashSha256(refreshToken), 'used'),
      ];
      const marks = await Promise.all(ends.map((key) => store.get(key)));
      if (marks.some((mark) => mark !== undefined)) return undefined;
      return {
        status: 200,
        headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' },
        body: JSON.stringify({ ...kept.tokens, expires_in: secondsLeft }),
      };
    },
    async keep(issued) {
      await Promise.all(
        listRecords(issued, clock.now()).map(({ token, record, ttlSeconds }) => {
          const key = buildAnswerKey(hashSha256(token));
          return store.set(key, createSeal([token]).seal(key, JSON.stringify(record)), ttlSeconds);
        }),
      ).catch(() => {});
    },
    end,
    async endAfterRefusal(refreshToken, status) {
      if (status >= 500 || status === 429) return;
      // Made-up tokens must not fill the store.
      const key = buildAnswerKey(hashSha256(refreshToken));
      const kept = await store.get(key).catch(() => undefined);
      if (kept !== undefined) await end(refreshToken).catch(() => {});
    },
  };
}

/** One for the refresh token that the client has from now on, one for the token that it used. */
function listRecords({ asked, grantId, used, tokens }: IssuedTokens, now: number) {
  const { access_token: access, refresh_token: issued, expires_in: lifetimeSeconds } = tokens;
  const current = typeof issued === 'string' ? issued : used;
  if (current === undefined || typeof access !== 'string') return [];
  if (typeof lifetimeSeconds !== 'number') return [];
  const ttlSeconds = Math.min(MAX_AGE_SECONDS, Math.floor(lifetimeSeconds / 2));
  if (!(ttlSeconds >= 1)) return [];
  const isReplacement = used !== undefined && used !== current;
  const secrets = [current, access, ...(isReplacement ? [used] : [])];
  const record: Omit<KeptAnswer, 'isReplaced' | 'predecessor'> = {
    version: RECORD_VERSION,
    asked,
    grantId,
    tokens: { ...tokens, ...(used !== undefined && { refresh_token: current }) },
    issuedAt: now,
    lifetimeSeconds,
    hashes: secrets.map(hashSha256),
  };
  const predecessor = isReplacement ? hashSha256(used) : undefined;
  return [
    { token: current, record: { ...record, isReplaced: false, predecessor }, ttlSeconds },
    ...(isReplacement
      ? [{ token: used, record: { ...record, isReplaced: true }, ttlSeconds }]
      : []),
  ];
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

export const readAskedTokens = (
  { get, pairs }: RequestParameters,
  clientId: string,
): AskedTokens => ({
  clientId,
  scope: get('scope'),
  resources: pairs.filter(([name]) => name === 'resource').map(([, value]) => value),
});

const isSameRequest = (one: AskedTokens, other: AskedTokens): boolean =>
  one.clientId === other.clientId &&
  one.scope === other.scope &&
  JSON.stringify([...one.resources].sort()) === JSON.stringify([...other.resources].sort());

const buildAnswerKey = (hash: string): string => buildOAuthKey('recent-answer', hash);

/** `used`: it was replaced, and its client has the next one. */
const buildEndKey = (hash: string, kind: 'ended' | 'used'): string =>
  buildOAuthKey(`recent-${kind}`, hash);
