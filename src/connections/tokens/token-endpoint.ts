// §24: requests to token and revocation endpoints (RFC 6749 §3.2, RFC 7009).

import {
  type AuthenticateForm,
  createFormRequest,
  type FormPair,
  type OAuthClient,
  redactSent,
} from '../../http/oauth-client/client-authentication.ts';
import { readServerTokens, type TokenAnswer } from '../../http/oauth-client/token-answer.ts';
import type { ConnectionServer } from '../../mcp/upstream/connections.ts';
import { createWorkQueue, type WorkQueue } from '../../platform/work-queue.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { ConnectionRecord } from '../connection-record.ts';
import type { Outbound } from '../servers/outbound.ts';

export type TokenEndpoint = ReturnType<typeof createTokenEndpoint>;

/** Of all servers together. */
const MAX_RUNNING = 200;
const MAX_WAITING = 1000;
/** Of one server: where it stalls, the others have the rest. */
const MAX_RUNNING_OF_SERVER = 25;
const MAX_WAITING_OF_SERVER = 275;
/** Whoever waits longer holds a lock for longer than another replica waits for it. */
const MAX_WAIT_MS = 10_000;

export function createTokenEndpoint(
  { clock }: Pick<Runtime, 'clock'>,
  outbound: Outbound,
  authenticate: AuthenticateForm,
) {
  const createRefusal = () => new TooManyRequests('has too many requests waiting for it');
  const all = createWorkQueue({
    maxRunning: MAX_RUNNING,
    maxWaiting: MAX_WAITING,
    createRefusal,
  });
  const byServer = new Map<string, WorkQueue>();

  /** When it is its turn, among those of its server first. @throws TooManyRequests */
  async function runInTurn<Result>(server: string, run: () => Promise<Result>): Promise<Result> {
    const abort = new AbortController();
    const { signal } = abort;
    const stopWaiting = clock.after(MAX_WAIT_MS, () => abort.abort(createRefusal()));
    const begin = () => {
      stopWaiting();
      return run();
    };
    const known = byServer.get(server);
    const queue =
      known ??
      createWorkQueue({
        maxRunning: MAX_RUNNING_OF_SERVER,
        maxWaiting: MAX_WAITING_OF_SERVER,
        createRefusal,
      });
    if (known === undefined) byServer.set(server, queue);
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

  return {
    /** @throws NoAnswer */
    async request(
      { tokenUrl, resource }: Pick<ConnectionRecord, 'tokenUrl' | 'resource'>,
      client: OAuthClient,
      grant: readonly FormPair[],
      server: ConnectionServer,
    ): Promise<TokenAnswer> {
      const pairs: readonly FormPair[] = [
        ...grant,
        ...(resource === undefined ? [] : [['resource', resource] as const]),
        ...Object.entries(server.auth.tokenParameters ?? {}),
      ];
      const { answer, form } = await post(tokenUrl, client, pairs, server);
      return readServerTokens(answer, form);
    },
    /** Undefined where it was revoked, or was worth nothing before; else what failed. Never rejects. */
    async revoke(
      url: string,
      client: OAuthClient,
      { value, hint }: { readonly value: string; readonly hint: 'access_token' | 'refresh_token' },
      server: ConnectionServer,
    ): Promise<string | undefined> {
      const pairs: readonly FormPair[] = [
        ['token', value],
        ['token_type_hint', hint],
      ];
      try {
        const { answer, form } = await post(url, client, pairs, server);
        if (answer.status >= 200 && answer.status < 300) return undefined;
        const read = readServerTokens(answer, form);
        return 'said' in read ? read.said : `answered ${answer.status}`;
      } catch (error) {
        return error instanceof Error ? redactSent(error.message, pairs) : 'did not answer';
      }
    },
  };
}

/** Nothing was sent. */
export class TooManyRequests extends Error {
  override readonly name = 'TooManyRequests';
}
