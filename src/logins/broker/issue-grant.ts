// §5.11: a login becomes a grant, and the grant a token response (RFC 6749 §5.1): whatever grant type it came by.

import { fail } from '../../errors/gateway-error.ts';
import { createJsonReply, type Reply } from '../../http/endpoint/message.ts';
import { type Grant, hasRefreshToken, issueFirstPair, nameUser } from '../grants/grant.ts';
import { hashResource, hashUser, maskScopes } from '../grants/token-codec.ts';
import { logLogin } from '../request/login-facts.ts';
import type { AskedPair } from './decide-refresh.ts';
import { auditEnd } from './ends.ts';
import type { Broker } from './open-broker.ts';

export type TokenIssue = ReturnType<typeof createTokenIssue>;

/** A grant without the times and the first tokens, which are added when it is issued. */
type NewGrant = Omit<Grant, 'createdAt' | 'renewedAt' | 'issued'>;

export function createTokenIssue({
  runtime: { audit, clock, log, oauth },
  ownTokens: { codec, grants },
  ends: { endGrantSoon, logouts, tellProviderInTurn },
}: Broker) {
  /** The fate of the others is no reason to refuse this login. */
  async function makeRoom({ user, id }: Grant) {
    for (const excess of await grants.listExcess(user, id)) {
      const ended = await endGrantSoon(excess, 'excess');
      if (ended !== undefined) auditEnd(audit, ended, 'make_room');
    }
  }

  return {
    /**
     * A login becomes a grant, unless it is over meanwhile; of a user who has too many then, one ends. The first tokens are for what
     * was asked, which is all that is granted unless something else is said.
     *
     * @param logoutMark - that of when the login began.
     * @param over - the words for a client whose login was ended since, with all of its user, say.
     * @throws GatewayError `invalid_grant`, or what the store throws.
     */
    async issueGrant(
      granted: NewGrant,
      logoutMark: number | undefined,
      over: string,
      asked: Partial<AskedPair> = {},
    ): Promise<Grant> {
      const { id, user, client, sid } = granted;
      const { scopes = granted.scopes, resources = granted.resources } = asked;
      const now = clock.now();
      const grant = grants.capExpiry({
        ...granted,
        createdAt: now,
        renewedAt: now,
        issued: issueFirstPair({ scopes, resources }, now, oauth.tokens.accessSeconds),
      });
      await grants.create(grant).catch((cause: unknown) => {
        // A store that did not answer may have written it all the same.
        void endGrantSoon(id, 'unfinished')
          .catch(() => undefined)
          .then((ended) => (ended === undefined ? tellProviderInTurn(grant) : undefined));
        throw cause;
      });
      const login = { user, clientId: client.id, sid, logoutMark };
      let isOver = false;
      try {
        isOver = await logouts.isOver(login);
        if (isOver) await endGrantSoon(id, 'unfinished');
      } catch (cause) {
        // Its client hears of no tokens: the user must not see a login that nobody has.
        endGrantSoon(id, 'unfinished').catch(() => {});
        throw cause;
      }
      if (isOver) failGrant(over);
      makeRoom(grant).catch((cause: unknown) =>
        log.warn('A user has more logins than the gateway keeps, and none could be ended.', {
          ...nameUser(user),
          cause,
        }),
      );
      return grant;
    },
    /**
     * The token response of a grant (RFC 6749 §5.1), made of the grant alone: whoever makes it again makes the same. And a line of
     * the log.
     */
    answer(grant: Grant, clientName: string | undefined, isRefresh: boolean): Reply {
      const { id, user, client, scopes: granted, issued } = grant;
      const { generation, issuedAt, expiresAt, scopes, resources } = issued;
      const login = { clientId: client.id, clientName, ...nameUser(user), isRefresh };
      const reply = createJsonReply(
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
          expires_in: Math.max(0, Math.floor((expiresAt - clock.now()) / 1000)),
          ...(hasRefreshToken(grant) && {
            refresh_token: codec.writeRefreshToken({ grantId: id, generation }),
          }),
          ...(scopes.length > 0 && { scope: scopes.join(' ') }),
        },
        { 'Cache-Control': 'no-store' },
      );
      return { ...reply, facts: { ...logLogin(log, login), grantId: id } };
    },
  };
}

/** @throws GatewayError `invalid_grant`, always. */
export function failGrant(details: string): never {
  return fail('invalid_grant', { details });
}
