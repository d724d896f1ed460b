// §24: requests to token endpoints (RFC 6749 §3.2), and the revocation of tokens at the authorization server, if it has an endpoint
// for that (RFC 7009).

import {
  type AuthenticateForm,
  createFormRequest,
  type FormPair,
  type OAuthClient,
  redactSent,
} from '../../http/oauth-client/client-authentication.ts';
import { readServerTokens, type ServerTokens } from '../../http/oauth-client/token-answer.ts';
import type { ConnectionServer } from '../../mcp/upstream/connections.ts';
import { createWorkQueue, type WorkQueue } from '../../platform/work-queue.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type ConnectionPlace, type ConnectionRecord, isMadeFor } from '../connection-record.ts';
import type { OAuthClients } from './clients.ts';
import type { Outbound } from './outbound.ts';

/** For all servers together. */
const MAX_RUNNING = 200;
const MAX_WAITING = 1000;
/** Per server: if one stalls, the rest is left for the others. */
const MAX_RUNNING_OF_SERVER = 25;
const MAX_WAITING_OF_SERVER = 275;
/** Must be shorter than another replica waits for the lock. */
const MAX_WAIT_MS = 10_000;

export function createTokenEndpoint(
  { clock }: Pick<Runtime, 'clock'>,
  outbound: Outbound,
  authenticate: AuthenticateForm,
  clients: Pick<OAuthClients, 'findForRecord'>,
) {
  const createRefusal = () => new TooManyRequests('has too many requests waiting for it');
  const all = createWorkQueue({ maxRunning: MAX_RUNNING, maxWaiting: MAX_WAITING, createRefusal });
  const byServer = new Map<string, WorkQueue>();

  /** Sends the request in its turn, with a limit per server. @throws TooManyRequests */
  async function runInTurn<Result>(server: string, run: () => Promise<Result>): Promise<Result> {
    const abort = new AbortController();
    const { signal } = abort;
    const stopWaiting = clock.after(MAX_WAIT_MS, () => abort.abort(createRefusal()));
    const begin = () => {
      stopWaiting();
      return run();
    };
    let queue = byServer.get(server);
    if (queue === undefined) {
      queue = createWorkQueue({
        maxRunning: MAX_RUNNING_OF_SERVER,
        maxWaiting: MAX_WAITING_OF_SERVER,
        createRefusal,
      });
      byServer.set(server, queue);
    }
    try {
      return await queue.run(() => all.run(begin, { signal }), { signal });
    } finally {
      stopWaiting();
    }
  }

  async function post(
    url: string,
    client: OAuthClient,
    pairs: readonly FormPair[],
    server: ConnectionServer,
  ) {
    const authenticated = await authenticate(client, url, pairs);
    const request = createFormRequest(authenticated);
    const answer = await runInTurn(server.name, () => outbound.send(url, request, server));
    return { answer, form: authenticated.form };
  }

  /**
   * Undefined if the token was revoked or already invalid, or if there is no revocation endpoint; otherwise the failure. Never
   * rejects.
   */
  async function revokeTokens(
    server: ConnectionServer,
    at: Pick<ConnectionRecord, 'issuer' | 'client' | 'revocationUrl'>,
    { accessToken, refreshToken }: Pick<ServerTokens, 'accessToken'> & Partial<ServerTokens>,
  ): Promise<string | undefined> {
    const { revocationUrl } = at;
    if (revocationUrl === undefined) return undefined;
    // Revoking a refresh token revokes its access tokens (§2.1).
    const pairs: readonly FormPair[] = [
      ['token', refreshToken ?? accessToken],
      ['token_type_hint', refreshToken === undefined ? 'access_token' : 'refresh_token'],
    ];
    try {
      const client = clients.findForRecord(server, at);
      const { answer, form } = await post(revocationUrl, client, pairs, server);
      if (answer.status >= 200 && answer.status < 300) return undefined;
      const read = readServerTokens(answer, form);
      return 'said' in read ? read.said : `answered ${answer.status}`;
    } catch (error) {
      return error instanceof Error ? redactSent(error.message, pairs) : 'did not answer';
    }
  }

  /**
   * Resolves to what could not be revoked, in words for people. `server` is undefined if it is no longer configured, `record` if it
   * could not be read. Never rejects.
   */
  async function revokeConnection(
    place: Pick<ConnectionPlace, 'server'>,
    server: ConnectionServer | undefined,
    record: ConnectionRecord | undefined,
  ): Promise<string | undefined> {
    if (record === undefined)
      return `the connection to ${place.server} could not be read, so nothing was revoked there`;
    const advice = advise(record);
    if (server === undefined)
      return `${place.server} is not configured any more, so nothing was revoked there: ${advice}`;
    // The current secret belongs to another client.
    if (record.client.source === 'configured' && !isMadeFor(record, server))
      return `${place.server} was set up again since, so nothing was revoked there: ${advice}`;
    if (record.revocationUrl === undefined)
      return `the authorization server of ${place.server} revokes no tokens (RFC 7009): ${advice}`;
    const said = await revokeTokens(server, record, record);
    return said && `${place.server}’s revocation endpoint ${said}: ${advice}`;
  }

  return {
    /** @throws NoAnswer */
    async requestTokens(
      { tokenUrl, resource }: Pick<ConnectionRecord, 'tokenUrl' | 'resource'>,
      client: OAuthClient,
      grant: readonly FormPair[],
      server: ConnectionServer,
    ) {
      const pairs: readonly FormPair[] = [
        ...grant,
        ...(resource === undefined ? [] : [['resource', resource] as const]),
        ...Object.entries(server.auth.tokenParameters ?? {}),
      ];
      const { answer, form } = await post(tokenUrl, client, pairs, server);
      return readServerTokens(answer, form);
    },
    revokeTokens,
    revokeConnection,
    /**
     * Revokes a login that another one has replaced. Many servers (Google, Keycloak) have one grant per account and client:
     * revoking the former login of the same account would end the present one.
     */
    async revokeFormer(
      server: ConnectionServer,
      former: ConnectionRecord,
      current: ConnectionRecord,
    ) {
      const isSame = isSameAccount(former, current);
      if (isSame === true) return undefined;
      const problem =
        isSame === false
          ? await revokeConnection({ server: server.name }, server, former)
          : `the authorization server of ${server.name} does not say whose it was, so nothing was revoked there. If it was another account’s, ${advise(former)}`;
      return problem && `The login before this one was replaced, but ${problem}`;
    },
  };
}

const advise = ({ issuer }: ConnectionRecord) => `end it at ${issuer}, too`;

/** Tokens of different clients are independent, even for one account. Undefined if the account is unknown. */
export function isSameAccount(one: ConnectionRecord, other: ConnectionRecord): boolean | undefined {
  if (one.issuer !== other.issuer || one.client.id !== other.client.id) return false;
  return one.subject === undefined || other.subject === undefined
    ? undefined
    : one.subject === other.subject;
}

/** Nothing was sent. */
export class TooManyRequests extends Error {
  override readonly name = 'TooManyRequests';
}
