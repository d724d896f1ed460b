// §24: requests to token and revocation endpoints (RFC 6749 §3.2, RFC 7009).
import { createWorkQueue } from '../../platform/work-queue.ts';
import type { ConnectionServer } from '../connection.ts';
import type { Outbound } from '../servers/outbound.ts';
import type { AuthenticateForm, FormPair, OAuthClient } from './client-authentication.ts';
import { readTokenAnswer, redact, type TokenAnswer } from './token-answer.ts';

export interface TokenEndpoint {
  /** @throws NoAnswer */
  request(
    url: string,
    client: OAuthClient,
    form: readonly FormPair[],
    server: ConnectionServer,
  ): Promise<TokenAnswer>;
  /** Undefined where it was revoked, or was worth nothing before; else what failed. Never rejects. */
  revoke(
    url: string,
    client: OAuthClient,
    token: { readonly value: string; readonly hint: 'access_token' | 'refresh_token' },
    server: ConnectionServer,
  ): Promise<string | undefined>;
}

/** Of all servers together; one that stalls must not keep the others waiting for ever: each request is bounded. */
const MAX_RUNNING = 100;
const MAX_WAITING = 1000;
/** Of one server: the rest is for others. */
const MAX_OF_SERVER = 300;

export function createTokenEndpoint(
  outbound: Outbound,
  authenticate: AuthenticateForm,
): TokenEndpoint {
  const queue = createWorkQueue({
    maxRunning: MAX_RUNNING,
    maxWaiting: MAX_WAITING,
    maxOfOne: MAX_OF_SERVER,
    createRefusal: () => new TooManyRequests('too many requests to token endpoints are waiting'),
  });

  async function post(
    url: string,
    client: OAuthClient,
    pairs: readonly FormPair[],
    server: ConnectionServer,
  ) {
    const { form, headers } = await authenticate(client, url, pairs);
    const body = new URLSearchParams(form.map((pair): [string, string] => [...pair])).toString();
    const request = {
      method: 'POST' as const,
      headers: { ...headers, 'Content-Type': 'application/x-www-form-urlencoded' },
      body,
    };
    const answer = await queue.run(() => outbound.send(url, request, server), {
      owner: server.name,
    });
    return { answer, form };
  }

  return {
    async request(url, client, pairs, server) {
      const { answer, form } = await post(url, client, pairs, server);
      return readTokenAnswer(answer, form);
    },
    async revoke(url, client, { value, hint }, server) {
      const pairs: readonly FormPair[] = [
        ['token', value],
        ['token_type_hint', hint],
      ];
      try {
        const { answer, form } = await post(url, client, pairs, server);
        if (answer.status >= 200 && answer.status < 300) return undefined;
        const read = readTokenAnswer(answer, form);
        return 'said' in read ? read.said : `answered ${answer.status}`;
      } catch (error) {
        return error instanceof Error ? redact(error.message, pairs) : 'did not answer';
      }
    },
  };
}

/** Nothing was sent. */
export class TooManyRequests extends Error {
  override readonly name = 'TooManyRequests';
}
