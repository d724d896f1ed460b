// §5.11: the token endpoint of broker mode: the grant type determines how a client gets tokens; the token response (RFC 6749 §5).

import { fail } from '../../errors/gateway-error.ts';
import type { JudgedRequest } from '../../http/endpoint/endpoint.ts';
import {
  createJsonReply,
  type GatewayRequest,
  getHeader,
  type Reply,
  type RequestBody,
} from '../../http/endpoint/message.ts';
import { parseBody } from '../../http/endpoint/parameters.ts';
import type {
  AuthenticationRequest,
  ClientAuthentication,
  ProvenClient,
} from '../client-authentication/authenticate-client.ts';
import { hasCredentials } from '../client-authentication/read-credentials.ts';
import type { Clients } from '../clients/clients.ts';
import { type Grant, hasRefreshToken, nameUser } from '../grants/grant.ts';
import { hashResource, hashUser, maskScopes } from '../grants/token-codec.ts';
import { addFacts, type LoginFacts, logLogin } from '../request/login-facts.ts';
import { auditEnd } from './ends.ts';
import type { Broker } from './open-broker.ts';
import type { AskedPair } from './resources.ts';

interface TokenRequest extends AuthenticationRequest {
  /** Filled in as they become known, for the reply and for errors. */
  readonly facts: LoginFacts;
}

/** Checks the request without effect, in the order of its RFC, and returns the work that is left. @throws GatewayError */
export type GrantType = (request: TokenRequest) => Promise<JudgedRequest>;

/** `grantTypes` by name; undefined for one that is switched off. */
export const createBrokerToken = (grantTypes: Readonly<Record<string, GrantType | undefined>>) => {
  const byName = new Map(Object.entries(grantTypes));
  return async function token(request: GatewayRequest, body: RequestBody) {
    const parameters = parseBody(body);
    const run = byName.get(parameters.require('grant_type')) ?? fail('unsupported_grant_type');
    const facts: LoginFacts = {};
    const authorization = getHeader(request, 'authorization');
    return addFacts(facts, run({ body, parameters, authorization, facts }));
  };
};

// A login becomes a grant, and the grant a token response, whatever the grant type.

export type TokenIssue = ReturnType<typeof createTokenIssue>;

/** A grant without its times or first tokens, which are added on issue. */
type NewGrant = Omit<Grant, 'createdAt' | 'renewedAt' | 'issued'>;

export function createTokenIssue({
  runtime: { audit, clock, log, oauth },
  ownTokens: { codec, grants },
  ends: { endGrantSoon, logouts, revokeAtProviderInTurn },
}: Broker) {
  /** A failure here is no reason to refuse the new login. */
  async function makeRoom({ user, id }: Grant) {
    for (const excess of await grants.listExcess(user, id)) {
      const ended = await endGrantSoon(excess, 'excess');
      if (ended !== undefined) auditEnd(audit, ended, 'make_room');
    }
  }

  return {
    /**
     * Stores a new grant, and ends it if its login was ended in the meantime. If its user has too many then, the one that would
     * expire first ends. The first tokens are for the scopes and resources in `asked`, by default for all that is granted.
     *
     * @param logoutMark - the mark (`Logouts`) of when the login began.
     * @param over - tells the client of a login that was ended since, for example with all logins of its user.
     * @throws GatewayError `invalid_grant`, or the store's error.
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
      const expiresAt = now + oauth.tokens.accessSeconds * 1000;
      const grant = grants.capExpiry({
        ...granted,
        createdAt: now,
        renewedAt: now,
        issued: { scopes, resources, generation: 1, issuedAt: now, expiresAt, isUsed: false },
      });
      await grants.create(grant).catch((cause: unknown) => {
        // A store that did not answer may have written it all the same.
        void endGrantSoon(id, 'unfinished')
          .catch(() => undefined)
          .then((ended) => (ended === undefined ? revokeAtProviderInTurn(grant) : undefined));
        throw cause;
      });
      let isOver = false;
      try {
        // Checked once the grant is stored: a logout either finds it, or is found here.
        isOver = await logouts.isOver({ user, clientId: client.id, sid, logoutMark });
        if (isOver) await endGrantSoon(id, 'unfinished');
      } catch (cause) {
        // The client gets no tokens: the user must not see a login that no client has.
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
     * RFC 6749 §5.1: the token response, and a line of the log. Its tokens depend on the grant alone.
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

// RFC 7009 in broker mode: a client revokes an access or a refresh token, and the login behind it ends.

export function createBrokerRevoke(
  { ownTokens: { codec, grants }, ends }: Broker,
  clients: Clients,
  { authenticate }: ClientAuthentication<ProvenClient>,
) {
  return async function revoke(request: GatewayRequest, body: RequestBody): Promise<JudgedRequest> {
    const authorization = getHeader(request, 'authorization');
    const parameters = parseBody(body);
    // RFC 7009 §2.1: `token_type_hint` is not needed.
    const token = parameters.require('token');
    const own = codec.readRefreshToken(token) ?? codec.readAccessToken(token);
    const stored = own && (await grants.read(own.grantId));
    // RFC 7009 §2.1: a client that authenticated to get the token authenticates here, too; the others are public, and name
    // themselves.
    const named = parameters.get('client_id');
    const isPublic = named !== undefined && clients.isKnownClient(named);
    const hasProved = stored !== undefined && !hasRefreshToken(stored.grant);
    const proves = hasProved || (!isPublic && hasCredentials(parameters, authorization));
    const proven = proves ? await authenticate({ body, parameters, authorization }) : undefined;
    const clientId = proven?.client.id ?? parameters.require('client_id');
    if (proven === undefined) await clients.requireWithoutFetch(clientId);
    // RFC 7009 §2.2: an unknown token counts as revoked already. Any stranger could have made it up.
    if (stored === undefined)
      return {
        async runAnonymous() {
          await proven?.useUp();
          return { ...REVOKED, ...(own && { facts: { grantId: own.grantId } }) };
        },
      };
    const { id, client, user } = stored.grant;
    // RFC 7009 §2.1: a token of another client is refused.
    if (client.id !== clientId) failGrant('The token was issued to another client.');
    return async function endAndAnswer() {
      await proven?.useUp();
      await ends.endGrant(id, 'client');
      return { ...REVOKED, facts: { ...nameUser(user), grantId: id } };
    };
  };
}

const REVOKED: Reply = { status: 200, headers: { 'Cache-Control': 'no-store' } };
