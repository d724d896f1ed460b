// §4.7: in proxy mode, caches the provider's last answer to a refresh for ten seconds: some clients refresh on every session
// check once an access token has less than five minutes left.

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
  /** Stays the same across refreshes. */
  readonly grantId: string;
  /** `readMark` of the grant before the provider was contacted; undefined for a code. */
  readonly mark: string | undefined;
  /** The refresh token that was used; undefined for a code. */
  readonly used: string | undefined;
  /** Members of the token response (RFC 6749 §5.1). */
  readonly tokens: JsonObject;
}

/** Sealed with the refresh token itself, so that readers of the store cannot open it. */
interface KeptAnswer extends Pick<IssuedTokens, 'asked' | 'grantId' | 'tokens'> {
  /** The mark of the grant since this answer. */
  readonly id: string;
  /** Epoch milliseconds of the provider's answer. */
  readonly issuedAt: number;
  readonly lifetimeSeconds: number;
}

/**
 * Against refresh storms; all other refreshes go to the provider. Also accepts the replaced token, since a client that lost the
 * answer retries within this time. No longer, since a thief with that token would get the next one.
 */
const MAX_AGE_SECONDS = 10;

/** For counting refreshes, and for noting refused tokens. */
export interface LoginIndex {
  /** Finds the grant in this process, without the store. */
  findKnownId(refreshToken: string, clientId: string): string | undefined;
  /** The login that this is the current refresh token of; undefined for any other token. Without effect. */
  findLogin(refreshToken: string, asked: AskedTokens): Promise<KnownLogin | undefined>;
  /**
   * Notes an access token that the gateway refused, perhaps since it has expired: earlier answers for its grant, if known, are
   * not given again. Never rejects.
   */
  noteRefusal?(accessToken: string): Promise<void>;
}

const answerFormat = jsonFormat<KeptAnswer>('The last answer of a grant');

/** `verifyToken` checks a token in full, as /mcp does. */
export function createRecentAnswers({ store, clock }: Runtime, verifyToken: Auth['verifyToken']) {
  /**
   * §8: grants of refresh tokens that this process issued or looked up recently. They are served even if their address sends many
   * made-up ones.
   */
  const knownTokens = createBoundedMap<string, string>('recentTokens');

  /** Sealed by the token itself, which is the secret. */
  const answersOf = (token: string) =>
    createRecords(store, answerFormat, async () => createSeal([token]));

  /** The cached answer for the client's refresh token, fresh or not. */
  async function find(refreshToken: string, clientId: string) {
    const kept = await answersOf(refreshToken).get(buildAnswerKey(refreshToken));
    return kept?.asked.clientId === clientId ? kept : undefined;
  }

  /** Finds a grant by a token that the gateway issued within the last day, or by its current refresh token within 30 days. */
  async function readGrant(token: string): Promise<ProviderGrant | undefined> {
    const text = await store.get(buildRecentGrantKey(token));
    const { grantId, clientId, isReplaced } = (text && parseObject(text)) || {};
    if (typeof grantId !== 'string' || typeof clientId !== 'string') return undefined;
    return { grantId, clientId, isReplaced: isReplaced === true };
  }

  /** The grant of a refresh or access token. Never rejects. */
  const findGrant = (token: string) => readGrant(token).catch(() => undefined);

  /**
   * The mark changes with each event of the grant: the provider answers a refresh, or a token is revoked or refused. It identifies
   * the last answer, and shows that nothing happened after it; on all replicas, independent of their clocks.
   */
  const readMark = (grantId: string) => store.get(buildMarkKey(grantId));

  /** False, without effect, if `before` is no longer the mark, and for a grant that has ended. */
  const changeMark = async (grantId: string, before: string | undefined, mark: string) =>
    before !== ENDED && store.compareAndSet(buildMarkKey(grantId), before, mark, MARK_SECONDS);

  /** For some minutes, no earlier answer for this grant is repeated, and its mark does not change. */
  const end = (grantId: string) => store.set(buildMarkKey(grantId), ENDED, MARK_SECONDS);

  /** Not if anything happened to the grant during the request to the provider: such an answer is not given again. */
  async function keepAnswers({ asked, grantId, mark, used, tokens }: IssuedTokens) {
    // The answer to a code is not cached.
    if (used === undefined) return;
    const id = generateSecret();
    const issuedAt = clock.now();
    if (!(await changeMark(grantId, mark, id))) return;
    const { access_token: access, refresh_token: current, expires_in: lifetimeSeconds } = tokens;
    if (typeof access !== 'string' || typeof lifetimeSeconds !== 'number') return;
    const answer = { id, asked, grantId, tokens, issuedAt, lifetimeSeconds };
    const ttlSeconds = Math.min(MAX_AGE_SECONDS, Math.floor(lifetimeSeconds));
    if (ttlSeconds < 1) return;
    // Found by the client's new refresh token, and by the one that it used.
    const names = new Set(typeof current === 'string' ? [current, used] : [used]);
    await Promise.all(
      [...names].map((token) => answersOf(token).put(buildAnswerKey(token), answer, ttlSeconds)),
    );
  }

  /** Remaining seconds and user of the access token; undefined if the answer must not be given again. */
  async function findFreshToken(kept: KeptAnswer, asked: AskedTokens) {
    // The gateway's own pages refresh when they have to, also after a refusal, and then need another token.
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
      // The client may have come because /mcp refuses it: only the provider can help.
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
      // The holder of a replaced token, or of another's, must not use up the limit of the login.
      if (!grant || grant.isReplaced || grant.clientId !== clientId) {
        knownTokens.delete(toKey(refreshToken, clientId));
        return undefined;
      }
      knownTokens.set(toKey(refreshToken, clientId), grant.grantId);
      const fresh = kept && (await findFreshToken(kept, asked));
      return { id: grant.grantId, isCheap: fresh !== undefined };
    },
    /** To be called before the refresh is sent to the provider. */
    readMark,
    /** Undefined unless the answer is fresh, the last event of its grant, for the same request, and its token is accepted. */
    async recall(kept: KeptAnswer, asked: AskedTokens) {
      const fresh = await findFreshToken(kept, asked);
      if (fresh === undefined) return undefined;
      const tokens = { ...kept.tokens, expires_in: fresh.secondsLeft };
      return {
        reply: createJsonReply(200, tokens, { 'Cache-Control': 'no-store' }),
        user: fresh.user,
      };
    },
    /** Never rejects: on failure, the next refresh goes to the provider. */
    async keep(issued: IssuedTokens): Promise<void> {
      const { grantId, used, tokens } = issued;
      const { clientId } = issued.asked;
      // The client's refresh token from now on.
      const current = typeof tokens.refresh_token === 'string' ? tokens.refresh_token : used;
      if (current !== undefined) knownTokens.set(toKey(current, clientId), grantId);
      // All tokens that identify the grant from now on, whether or not the answer is cached.
      const keeping = [...new Set([used, current, tokens.access_token])]
        .filter((token) => typeof token === 'string')
        .map((token) => {
          const isReplaced = token === used && token !== current;
          const grant = { grantId, clientId, isReplaced };
          const ttlSeconds = token === current ? CURRENT_SECONDS : GRANT_SECONDS;
          return store.set(buildRecentGrantKey(token), writeVersioned(grant), ttlSeconds);
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
     * The provider refused a refresh. If the refusal is permanent, the grant may have been revoked, for example because a token
     * was reused. Never rejects. Tokens of unknown grants have no effect: made-up ones must not fill the store.
     */
    async endAfterRefusal(grantId: string | undefined, status: number) {
      if (grantId === undefined || status >= 500 || status === 429) return;
      await end(grantId).catch(() => {});
    },
  };
}

const buildAnswerKey = (token: string) => buildOAuthKey('recent-answer', hashSha256(token));

// The grant of a token, and the last event of the grant. In proxy mode a grant is the provider's: all tokens that descend from one
// login, under an ID of this gateway's. It has nothing to do with `Grant`, the record of broker mode. Only hashes of tokens are
// stored.

interface ProviderGrant {
  /** Stays the same across refreshes. */
  readonly grantId: string;
  readonly clientId: string;
  /** The client has received another refresh token instead. */
  readonly isReplaced: boolean;
}

/** A stolen token that was replaced long ago still ends its successors. */
const GRANT_SECONDS = 86_400;
/** After a weekend or a holiday, it still identifies the login. */
const CURRENT_SECONDS = 2_592_000;

/** The mark of a grant that has ended. */
const ENDED = 'ended';
/** Exceeds the lifetime of cached answers plus the provider's response time. Without its mark, no answer is given again. */
const MARK_SECONDS = 600;

const buildRecentGrantKey = (token: string) => buildOAuthKey('recent-grant', hashSha256(token));

const buildMarkKey = (grantId: string) => buildOAuthKey('recent-mark', hashSha256(grantId));

const toKey = (refreshToken: string, clientId: string) =>
  hashSha256(JSON.stringify([clientId, refreshToken]));

// The tokens that a client asks for, and whether two requests ask for the same.

/** The request for tokens. A different one gets its own answer. */
interface AskedTokens {
  readonly clientId: string;
  /** As sent, in the order of their names; without those that only authenticate the request. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
}

/** Parameters of a code, a refresh token or the client: they do not change which tokens are asked for. */
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
