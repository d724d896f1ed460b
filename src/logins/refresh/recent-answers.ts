// §4.7: in proxy mode, the provider's last answer to a refresh. For ten seconds its client gets it again: some clients refresh at every
// look at a session once an access token has less than five minutes left.

import type { KnownLogin } from '../../http/endpoint/endpoint.ts';
import { createJsonReply, type Reply, type UserContext } from '../../http/endpoint/message.ts';
import { isOwnClient } from '../../http/endpoint/own-clients.ts';
import type { Clock } from '../../platform/clock.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import { createRecords, jsonFormat } from '../../store/records.ts';
import { createSeal } from '../../store/seal/seal.ts';
import type { KeyValue } from '../../store/store.ts';
import type { AskedTokens } from '../request/parameters.ts';
import { isSameRequest } from '../request/parameters.ts';
import { createKnownGrants, createKnownRefreshTokens, type KnownGrant } from './known-grants.ts';

export interface IssuedTokens {
  readonly asked: AskedTokens;
  /** Stays the same from refresh to refresh. */
  readonly grantId: string;
  /** `readMark` of the grant before the provider was asked; undefined for a code. */
  readonly mark: string | undefined;
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
  /** Undefined unless it is fresh, the last thing that happened to its grant, what is asked for now, and its token is accepted. */
  recall(kept: KeptAnswer, asked: AskedTokens): Promise<RecalledAnswer | undefined>;
  /** To be read before the provider is asked to refresh. */
  readMark(grantId: string): Promise<string | undefined>;
  /** Never rejects: without it the next refresh is one more. */
  keep(issued: IssuedTokens): Promise<void>;
  /** Whether this process knows the token, without a look at the store. */
  findKnownId(refreshToken: string, clientId: string): string | undefined;
  /** Whose current refresh token this is; undefined for any other. Without effect. */
  findLogin(refreshToken: string, asked: AskedTokens): Promise<KnownLogin | undefined>;
  /** Of a refresh or access token. Never rejects. */
  findGrant(token: string): Promise<KnownGrant | undefined>;
  /** Nothing of this grant is given again for some minutes. */
  end(grantId: string): Promise<void>;
  /**
   * The gateway refused an access token, perhaps since it has expired. What the provider was asked for until now is not given again
   * for its grant, where that is known. Never rejects.
   */
  noteRefusal(accessToken: string): Promise<void>;
  /**
   * The provider refused a refresh. If it is for good, the grant may have ended there: because of a token that was used
   * twice, say. Never rejects. Tokens of no known grant end nothing: made-up ones must not fill the store.
   */
  endAfterRefusal(grantId: string | undefined, status: number): Promise<void>;
}

/** Sealed with the refresh token itself, so that nobody who reads the store can open it. */
export interface KeptAnswer {
  /** The mark of the grant from this answer on. */
  readonly id: string;
  readonly asked: AskedTokens;
  readonly grantId: string;
  readonly tokens: Readonly<Record<string, unknown>>;
  /** Epoch milliseconds: when the provider answered. */
  readonly issuedAt: number;
  readonly lifetimeSeconds: number;
}

/**
 * For clients that refresh in a storm: any other refresh is the provider's to answer. With the token that was replaced, too: a client that
 * lost the answer comes again within this time. No longer, since a thief who has that token comes by the next one in it.
 */
const MAX_AGE_SECONDS = 10;

const answerFormat = jsonFormat<KeptAnswer>('The last answer of a grant');

interface FreshToken extends Pick<RecalledAnswer, 'user'> {
  readonly secondsLeft: number;
}

/** For counting refreshes, and for noting tokens that are refused. */
export interface LoginIndex
  extends Pick<RecentAnswers, 'findKnownId' | 'findLogin'>,
    Partial<Pick<RecentAnswers, 'noteRefusal'>> {}

export interface RecentAnswersDeps {
  readonly store: KeyValue;
  readonly clock: Clock;
  /** As /mcp does, in full. @throws GatewayError, at once or by the promise, for a token that is not accepted as things stand. */
  readonly verifyToken: (token: string) => UserContext | undefined | Promise<UserContext>;
}

export function createRecentAnswers(deps: RecentAnswersDeps): RecentAnswers {
  const { store, clock, verifyToken } = deps;
  const grants = createKnownGrants(store);
  const knownTokens = createKnownRefreshTokens();

  /** The token itself is the secret that seals them. */
  const answersOf = (token: string) => createRecords(store, answerFormat, createSeal([token]));

  async function find(refreshToken: string, clientId: string): Promise<KeptAnswer | undefined> {
    const kept = await answersOf(refreshToken).get(buildAnswerKey(refreshToken));
    return kept?.asked.clientId === clientId ? kept : undefined;
  }

  const findGrant = (token: string) => grants.find(hashSha256(token)).catch(() => undefined);

  /** Unless anything happened to the grant while the provider was asked: an answer from before that is not given again. */
  async function keepAnswers(issued: IssuedTokens): Promise<void> {
    // What came of a code is not given again.
    if (issued.used === undefined) return;
    const id = generateSecret();
    const answers = buildAnswers(issued, id, clock.now());
    if (!(await grants.changeMark(issued.grantId, issued.mark, id))) return;
    await Promise.all([...answers].map(([token, answer]) => keepAnswer(token, answer)));
  }

  async function keepAnswer(token: string, answer: KeptAnswer): Promise<void> {
    const ttlSeconds = Math.min(MAX_AGE_SECONDS, Math.floor(answer.lifetimeSeconds));
    if (ttlSeconds < 1) return;
    await answersOf(token).put(buildAnswerKey(token), answer, ttlSeconds);
  }

  /** Of the access token; undefined where the answer is not to be given again. */
  async function findFreshToken(
    kept: KeptAnswer,
    asked: AskedTokens,
  ): Promise<FreshToken | undefined> {
    // They renew when they have to, also because a token was refused, and then want another one.
    if (isOwnClient(asked.clientId)) return undefined;
    const secondsLeft = computeSecondsLeft(kept, clock.now());
    if (secondsLeft === undefined || !isSameRequest(kept.asked, asked)) return undefined;
    const { access_token: access } = kept.tokens;
    if (typeof access !== 'string') return undefined;
    if ((await grants.readMark(kept.grantId)) !== kept.id) return undefined;
    try {
      return { secondsLeft, user: (await verifyToken(access))?.sub };
    } catch {
      // Its client comes because /mcp refuses it, perhaps: only the provider can help there.
      return undefined;
    }
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
      const fresh = kept && (await findFreshToken(kept, asked));
      return { id: grant.grantId, isAnswered: fresh !== undefined };
    },
    readMark: grants.readMark,
    async recall(kept, asked) {
      const fresh = await findFreshToken(kept, asked);
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
      const keeping = listGrants(issued).map(({ token, grant, isCurrent }) =>
        grants.keep(hashSha256(token), grant, isCurrent),
      );
      await Promise.all([...keeping, keepAnswers(issued)]).catch(() => {});
    },
    findGrant,
    end: grants.end,
    async noteRefusal(accessToken) {
      const { grantId } = (await findGrant(accessToken)) ?? {};
      if (grantId === undefined) return;
      const changing = grants
        .readMark(grantId)
        .then((before) => grants.changeMark(grantId, before, generateSecret()));
      await changing.catch(() => {});
    },
    async endAfterRefusal(grantId, status) {
      if (grantId === undefined || status >= 500 || status === 429) return;
      await grants.end(grantId).catch(() => {});
    },
  };
}

/** By the refresh token that the client has from now on, and by the one that it used. */
function buildAnswers(
  issued: IssuedTokens,
  id: string,
  now: number,
): ReadonlyMap<string, KeptAnswer> {
  const { asked, grantId, used, tokens } = issued;
  const { access_token: access, expires_in: lifetimeSeconds } = tokens;
  const current = getCurrentToken(issued);
  if (current === undefined || typeof access !== 'string') return new Map();
  if (typeof lifetimeSeconds !== 'number') return new Map();
  const answer: KeptAnswer = {
    id,
    asked,
    grantId,
    tokens,
    issuedAt: now,
    lifetimeSeconds,
  };
  return new Map([current, ...(used === undefined ? [] : [used])].map((token) => [token, answer]));
}

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
  { issuedAt, lifetimeSeconds }: KeptAnswer,
  now: number,
): number | undefined {
  // Clocks of replicas differ.
  const age = Math.max(0, (now - issuedAt) / 1000);
  const secondsLeft = Math.floor(lifetimeSeconds - age);
  return age <= MAX_AGE_SECONDS && secondsLeft > 0 ? secondsLeft : undefined;
}

const buildAnswerKey = (token: string): string => buildOAuthKey('recent-answer', hashSha256(token));
