// §5.11: a login becomes a grant, and the grant a token response (RFC 6749 §5.1): whatever grant type it came by.

import { createJsonReply, type Reply } from '../../http/endpoint/message.ts';
import { type Grant, hasRefreshToken, nameUser } from '../grants/grant.ts';
import { hashResource, hashUser, maskScopes, type TokenCodec } from '../grants/token-codec.ts';
import { createLoginLog } from '../request/login-facts.ts';
import type { Broker } from './open-broker.ts';

export type TokenIssue = ReturnType<typeof createTokenIssue>;

export function createTokenIssue(broker: Broker) {
  const { runtime } = broker;
  const writeTokens = createWriteTokens(broker.ownTokens.codec);
  const logLogin = createLoginLog(runtime.log);
  return {
    issueGrant: createIssueGrant(broker),
    writeTokens,
    logLogin,
    /** The token response of a grant, and a line of the log. */
    answer(grant: Grant, clientName: string | undefined, isRefresh: boolean): Reply {
      const login = { clientId: grant.client.id, clientName, ...nameUser(grant.user), isRefresh };
      const facts = { ...logLogin(login), grantId: grant.id };
      return { ...writeTokens(grant, runtime.clock.now()), facts };
    },
  };
}

// A login becomes a grant, unless it is over meanwhile; of a user who has too many then, one ends.

/** `logoutMark` is that of when the login began. Undefined where all logins of its user, say, were ended since. */
export type IssueGrant = (
  grant: Grant,
  logoutMark: number | undefined,
) => Promise<Grant | undefined>;

function createIssueGrant({
  runtime: { audit, log },
  ownTokens: { grants },
  ends: { endGrantSoon, logouts, tellProviderInTurn },
}: Broker): IssueGrant {
  /** The fate of the others is no reason to refuse this login. */
  async function makeRoom({ user, id }: Grant): Promise<void> {
    for (const excess of await grants.listExcess(user, id)) {
      const ended = await endGrantSoon(excess, 'excess');
      if (ended === undefined) continue;
      const { client } = ended;
      const action = {
        event: 'revocation',
        ...nameUser(user),
        client: client.id,
        grant: ended.id,
        action: 'make_room',
      } as const;
      audit?.write(action, { outcome: 'success' });
    }
  }

  /** A store that did not answer may have written it all the same. */
  async function endUnwritten(grant: Grant): Promise<void> {
    const ended = await endGrantSoon(grant.id, 'unfinished').catch(() => undefined);
    if (ended === undefined) await tellProviderInTurn(grant);
  }

  return async function issueGrant(grant, logoutMark) {
    const { id, user, client, sid } = grant;
    try {
      await grants.create(grant);
    } catch (cause) {
      void endUnwritten(grant);
      throw cause;
    }
    try {
      if (await logouts.isOver({ user, clientId: client.id, sid, logoutMark })) {
        await endGrantSoon(id, 'unfinished');
        return undefined;
      }
    } catch (cause) {
      // Its client hears of no tokens: the user must not see a login that nobody has.
      endGrantSoon(id, 'unfinished').catch(() => {});
      throw cause;
    }
    makeRoom(grant).catch((cause: unknown) =>
      log.warn('A user has more logins than the gateway keeps, and none could be ended.', {
        ...nameUser(user),
        cause,
      }),
    );
    return grant;
  };
}

// RFC 6749 §5.1: the token response, made of the grant alone: whoever makes it again makes the same.

export type WriteTokens = (grant: Grant, now: number) => Reply;

/** `now` in epoch milliseconds. */
const createWriteTokens =
  (codec: Pick<TokenCodec, 'writeAccessToken' | 'writeRefreshToken'>): WriteTokens =>
  (grant, now) => {
    const { id, user, scopes: granted, issued } = grant;
    const { generation, issuedAt, expiresAt, scopes, resources } = issued;
    return createJsonReply(
      200,
      {
        access_token: codec.writeAccessToken({
          grantId: id,
          userKey: hashUser(user),
          generation,
          issuedAt: Math.floor(issuedAt / 1000),
          expiresAt: Math.floor(expiresAt / 1000),
          scopeMask: maskScopes(granted, scopes),
          resourceHashes: resources.map(hashResource),
        }),
        token_type: 'Bearer',
        expires_in: Math.max(0, Math.floor((expiresAt - now) / 1000)),
        ...(hasRefreshToken(grant) && {
          refresh_token: codec.writeRefreshToken({ grantId: id, generation }),
        }),
        ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      },
      { 'Cache-Control': 'no-store' },
    );
  };
