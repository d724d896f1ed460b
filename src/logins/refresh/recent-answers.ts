// §4.7: in proxy mode, the provider's last answer to a refresh. For ten seconds its client gets it again: some clients refresh at every
// look at a session once an access token has less than five minutes left.

import type { KnownLogin } from '../../http/endpoint/endpoint.ts';
import { createJsonReply } from '../../http/endpoint/message.ts';
import { isOwnClient } from '../../http/endpoint/own-clients.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { type JsonObject, parseObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import { createRecords, jsonFormat, writeVersioned } from '../../store/records.ts';
import { createSeal } from '../../store/seal/seal.ts';
import type { Auth } from '../auth/auth.ts';

interface IssuedTokens {
  readonly asked: AskedTokens;
  /** Stays the same from refresh to refresh. */
  readonly grantId: string;
  /** `readMark` of the grant before the provider was asked; undefined for a code. */
  readonly mark: string | undefined;
  /** The refresh token that was used up; undefined for a code. */
  readonly used: string | undefined;
  /** The members of the token response (RFC 6749 §5.1). */
  readonly tokens: JsonObject;
}

/** Sealed with the refresh token itself, so that nobody who reads the store can open it. */
interface KeptAnswer extends Pick<IssuedTokens, 'asked' | 'grantId' | 'tokens'> {
  /** The mark of the grant from this answer on. */
  readonly id: string;
  /** Epoch milliseconds: when the provider answered. */
  readonly issuedAt: number;
  readonly lifetimeSeconds: number;
}

/**
 * For clients that refresh in a storm: any other refresh is the provider's to answer. With the token that was replaced, too: a client that
 * lost the answer comes again within this time. No longer, since a thief who has that token comes by the next one in it.
 */
const MAX_AGE_SECONDS = 10;

/** For counting refreshes, and for noting tokens that are refused. */
export interface LoginIndex {
  /** Tells whether this process knows the token, without a look at the store. */
  findKnownId(refreshToken: string, clientId: string): string | undefined;
  /** The login whose current refresh token this is; undefined for any other. Without effect. */
  findLogin(refreshToken: string, asked: AskedTokens): Promise<KnownLogin | undefined>;
  /**
   * The gateway refused an access token, perhaps since it has expired. What the provider was asked for until now is not given again
   * for its grant, where that is known. Never rejects.
   */
  noteRefusal?(accessToken: string): Promise<void>;
}

const answerFormat = jsonFormat<KeptAnswer>('The last answer of a grant');

/** `verifyToken` judges a token as /mcp does, in full. */
export function createRecentAnswers({ store, clock }: Runtime, verifyToken: Auth['verifyToken']) {
  /**
   * §8: the grants of refresh tokens that this process handed out or looked up lately. They are served however many made-up ones come
   * from the same address.
   */
  const knownTokens = createBoundedMap<string, string>('recentTokens');

  /** The token itself is the secret that seals them; nothing is derived from one that has none. */
  const answersOf = (token: string) =>
    createRecords(store, answerFormat, async () => createSeal([token]));

  /** The answer that is kept for the client's refresh token, be it fresh or not. */
  async function find(refreshToken: string, clientId: string) {
    const kept = await answersOf(refreshToken).get(buildAnswerKey(refreshToken));
    return kept?.asked.clientId === clientId ? kept : undefined;
  }

  /** Finds by a token that the gateway handed out within the last day, or of a current refresh token of the last 30 days. */
  async function readGrant(token: string): Promise<KnownGrant | undefined> {
    const text = await store.get(buildGrantKey(token));
    const { grantId, clientId, isReplaced } = (text && parseObject(text)) || {};
    if (typeof grantId !== 'string' || typeof clientId !== 'string') return undefined;
    return { grantId, clientId, isReplaced: isReplaced === true };
  }

  /** The grant of a refresh or access token. Never rejects. */
  const findGrant = (token: string) => readGrant(token).catch(() => undefined);

  /**
   * Changes whenever something happens to the grant: the provider answers a refresh, or a token of it is revoked or refused. It says
   * which answer is the last one, and that nothing came after it; on all replicas, whatever their clocks say.
   */
  const readMark = (grantId: string) => store.get(buildMarkKey(grantId));

  /** False, and nothing is done, where `before` is the mark no more, and for a grant that has ended. */
  const changeMark = async (grantId: string, before: string | undefined, mark: string) =>
    before !== ENDED && store.compareAndSet(buildMarkKey(grantId), before, mark, MARK_SECONDS);

  /** Nothing of this grant is given again for some minutes, in which the mark stays what it is then. */
  const end = (grantId: string) => store.set(buildMarkKey(grantId), ENDED, MARK_SECONDS);

  /** Unless anything happened to the grant while the provider was asked: an answer from before that is not given again. */
  async function keepAnswers({ asked, grantId, mark, used, tokens }: IssuedTokens) {
    // The answer to a code is not given again.
    if (used === undefined) return;
    const id = generateSecret();
    const issuedAt = clock.now();
    if (!(await changeMark(grantId, mark, id))) return;
    const { access_token: access, refresh_token: current, expires_in: lifetimeSeconds } = tokens;
    if (typeof access !== 'string' || typeof lifetimeSeconds !== 'number') return;
    const answer = { id, asked, grantId, tokens, issuedAt, lifetimeSeconds };
    const ttlSeconds = Math.min(MAX_AGE_SECONDS, Math.floor(lifetimeSeconds));
    if (ttlSeconds < 1) return;
    // Found by the refresh token that the client has from now on, and by the one that it used.
    const names = new Set(typeof current === 'string' ? [current, used] : [used]);
    await Promise.all(
      [...names].map((token) => answersOf(token).put(buildAnswerKey(token), answer, ttlSeconds)),
    );
  }

  /** The seconds left of the access token, and whose it is; undefined where the answer is not to be given again. */
  async function findFreshToken(kept: KeptAnswer, asked: AskedTokens) {
    // They renew when they have to, also because a token was refused, and then want another one.
    if (isOwnClient(asked.clientId)) return undefined;
    // Clocks of replicas differ.
    const age = Math.max(0, (clock.now() - kept.issuedAt) / 1000);
    const secondsLeft = Math.floor(kept.lifetimeSeconds - age);
    if (age > MAX_AGE_SECONDS || !(secondsLeft > 0) || !isSameRequest(kept.asked, asked))
      return undefined;
    const { access_token: access } = kept.tokens;
    if (typeof access !== 'string') return undefined;
    if ((await readMark(kept.grantId)) !== kept.id) return undefined;
    try {
      return { secondsLeft, user: (await verifyToken(access))?.sub };
    } catch {
      // Its client comes because /mcp refuses it, perhaps: only the provider can help there.
      return undefined;
    }
  }

  return {
    find,
    findKnownId: (refreshToken: string, clientId: string) =>
      knownTokens.get(toKey(refreshToken, clientId)),
    async findLogin(refreshToken: string, asked: AskedTokens): Promise<KnownLogin | undefined> {
      const { clientId } = asked;
      const [grant, kept] = await Promise.all([
        readGrant(refreshToken),
        find(refreshToken, clientId),
      ]);
      // Whoever brings one that was replaced, or another's, must not use up what the login has.
      if (!grant || grant.isReplaced || grant.clientId !== clientId) {
        knownTokens.delete(toKey(refreshToken, clientId));
        return undefined;
      }
      knownTokens.set(toKey(refreshToken, clientId), grant.grantId);
      const fresh = kept && (await findFreshToken(kept, asked));
      return { id: grant.grantId, isAnswered: fresh !== undefined };
    },
    /** To be read before the provider is asked to refresh. */
    readMark,
    /** Undefined unless it is fresh, the last thing that happened to its grant, what is asked for now, and its token is accepted. */
    async recall(kept: KeptAnswer, asked: AskedTokens) {
      const fresh = await findFreshToken(kept, asked);
      if (fresh === undefined) return undefined;
      const tokens = { ...kept.tokens, expires_in: fresh.secondsLeft };
      return {
        reply: createJsonReply(200, tokens, { 'Cache-Control': 'no-store' }),
        user: fresh.user,
      };
    },
    /** Never rejects: without it the next refresh is one more. */
    async keep(issued: IssuedTokens): Promise<void> {
      const { grantId, used, tokens } = issued;
      const { clientId } = issued.asked;
      // The refresh token that the client has from now on.
      const current = typeof tokens.refresh_token === 'string' ? tokens.refresh_token : used;
      if (current !== undefined) knownTokens.set(toKey(current, clientId), grantId);
      // Every token that names the grant from now on, whether its answer is kept or not.
      const keeping = [...new Set([used, current, tokens.access_token])]
        .filter((token) => typeof token === 'string')
        .map((token) => {
          const isReplaced = token === used && token !== current;
          const grant = { grantId, clientId, isReplaced };
          const ttlSeconds = token === current ? CURRENT_SECONDS : GRANT_SECONDS;
          return store.set(buildGrantKey(token), writeVersioned(grant), ttlSeconds);
        });
      await Promise.all([...keeping, keepAnswers(issued)]).catch(() => {});
    },
    findGrant,
    end,
    async noteRefusal(accessToken: string) {
      const { grantId } = (await findGrant(accessToken)) ?? {};
      if (grantId === undefined) return;
      const changing = readMark(grantId).then((before) =>
        changeMark(grantId, before, generateSecret()),
      );
      await changing.catch(() => {});
    },
    /**
     * The provider refused a refresh. If it is for good, the grant may have ended there: because of a token that was used
     * twice, say. Never rejects. Tokens of no known grant end nothing: made-up ones must not fill the store.
     */
    async endAfterRefusal(grantId: string | undefined, status: number) {
      if (grantId === undefined || status >= 500 || status === 429) return;
      await end(grantId).catch(() => {});
    },
  };
}

const buildAnswerKey = (token: string) => buildOAuthKey('recent-answer', hashSha256(token));

// The grant that a token belongs to, and what happened to the grant last. Only hashes of tokens are stored.

interface KnownGrant {
  /** Stays the same from refresh to refresh. */
  readonly grantId: string;
  readonly clientId: string;
  /** The client had another refresh token given in place of this one. */
  readonly isReplaced: boolean;
}

/** A token that was stolen and replaced long ago still ends what came after it. */
const GRANT_SECONDS = 86_400;
/** After a weekend or a holiday it still says whose login comes. */
const CURRENT_SECONDS = 2_592_000;

/** The mark of a grant that has ended. */
const ENDED = 'ended';
/** Longer than an answer is given again and the provider may take for one. Without its mark no answer is. */
const MARK_SECONDS = 600;

const buildGrantKey = (token: string) => buildOAuthKey('recent-grant', hashSha256(token));

const buildMarkKey = (grantId: string) => buildOAuthKey('recent-mark', hashSha256(grantId));

const toKey = (refreshToken: string, clientId: string) =>
  hashSha256(JSON.stringify([clientId, refreshToken]));

// The tokens that a client asks for, and whether two requests ask for the same.

/** The tokens that a client asked for. Whoever asks for anything else gets an answer of its own. */
export interface AskedTokens {
  readonly clientId: string;
  /** As they were sent, in the order of their names; without what only says who asks, and by what right. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
}

/** Parameters of a code or a refresh token, and of the client: the same tokens are asked for with either. */
const RIGHTS = new Set([
  'grant_type',
  'code',
  'code_verifier',
  'redirect_uri',
  'refresh_token',
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
]);

export const readAskedTokens = ({ pairs }: RequestParameters, clientId: string): AskedTokens => ({
  clientId,
  parameters: pairs
    .filter(([name]) => !RIGHTS.has(name))
    .sort(([name, value], [otherName, other]) =>
      name === otherName ? compare(value, other) : compare(name, otherName),
    ),
});

const compare = (one: string, other: string) => Number(one > other) - Number(one < other);

const isSameRequest = (one: AskedTokens, other: AskedTokens) =>
  one.clientId === other.clientId &&
  JSON.stringify(one.parameters) === JSON.stringify(other.parameters);
