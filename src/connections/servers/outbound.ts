// §24: requests to addresses that a server or its operator names: metadata, registration and token endpoints. All are bounded, and
// no redirect is followed.

import type { TokenEndpointAnswer } from '../../http/oauth-client/token-answer.ts';
import { ConnectionProblem, type ConnectionServer } from '../../mcp/upstream/connections.ts';
import { isOnThisMachine, isSafeForTokens } from '../../platform/address.ts';
import { rejectOnAbort } from '../../platform/cancellation.ts';
import { getErrorCode } from '../../platform/error-code.ts';
import { type FetchInit, fetchWithLimits, readBody } from '../../platform/fetch-with-limits.ts';
import { ConnectTimeout } from '../../platform/http-client/connect.ts';
import { UnsendableHeader } from '../../platform/http-client/http-pool.ts';
import { type Network, requestPublicHost } from '../../platform/outbound/public-network.ts';
import { quote } from '../../platform/text.ts';
import type { Runtime } from '../../runtime/runtime.ts';

export type Outbound = ReturnType<typeof createOutbound>;

type OutboundRequest = Pick<FetchInit, 'method' | 'headers' | 'body'>;

/** No answer. The cause says why; it may name internal hosts. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
  /** True if the request may have reached the server. */
  readonly mayHaveArrived: boolean;

  constructor(url: string, mayHaveArrived: boolean, cause: unknown) {
    super(`${new URL(url).host} did not answer`, { cause });
    this.mayHaveArrived = mayHaveArrived;
  }
}

/** Turns a missing answer into a problem for the user: the login cannot continue without it. */
export const createNoAnswerProblem =
  (what: string) =>
  (cause: unknown): never => {
    if (!(cause instanceof NoAnswer)) throw cause;
    throw new ConnectionProblem('server', `${what}: ${cause.message}.`, { cause });
  };

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 262_144;
/** Timeout of the request for a challenge; after it, metadata is looked for at its default location. */
const CHALLENGE_MS = 5000;

/** `fetch` is for addresses from an operator, `network` for those from a server. */
export function createOutbound(
  { fetch, clock }: Pick<Runtime, 'fetch' | 'clock'>,
  network: Network,
) {
  async function sendTrusted(url: string, request: OutboundRequest): Promise<TokenEndpointAnswer> {
    try {
      const { status, headers, body } = await fetchWithLimits(fetch, url, request, {
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_BYTES,
        acceptsRedirects: true,
      });
      return { status, location: headers.get('location') ?? undefined, body };
    } catch (cause) {
      throw new NoAnswer(url, isArrivalPossible(cause), cause);
    }
  }

  async function sendPublic(url: string, given: OutboundRequest): Promise<TokenEndpointAnswer> {
    const abort = new AbortController();
    const { signal } = abort;
    const cancel = clock.after(TIMEOUT_MS, () =>
      abort.abort(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)),
    );
    let isConnected = false;
    const onConnected = () => {
      isConnected = true;
    };
    async function ask() {
      const request = { ...given, onConnected };
      const { status, headers, body } = await requestPublicHost(
        new URL(url),
        request,
        network,
        signal,
      );
      return { status, location: headers.location, body: await readBody(body, MAX_BYTES) };
    }
    try {
      return await Promise.race([ask(), rejectOnAbort(signal)]);
    } catch (cause) {
      throw new NoAnswer(url, isConnected, cause);
    } finally {
      cancel();
      // Closes open connections.
      abort.abort();
    }
  }

  return {
    /** @throws NoAnswer */
    send(url: string, given: OutboundRequest, server: ConnectionServer) {
      const request = { ...given, headers: { Accept: 'application/json', ...given.headers } };
      return isOperatorsWord(url, server) ? sendTrusted(url, request) : sendPublic(url, request);
    },
    /** Reads the `WWW-Authenticate` of the server's 401 to a request without a token; undefined without one. Never rejects. */
    async readChallenge({ url }: ConnectionServer): Promise<string | undefined> {
      try {
        const response = await fetch(url, {
          method: 'POST',
          redirect: 'manual',
          signal: AbortSignal.timeout(CHALLENGE_MS),
          headers: {
            'Content-Type': 'application/json',
            Accept: 'application/json, text/event-stream',
          },
          // A ping starts no session, even if the server needs no login.
          body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
        });
        await response.body?.cancel();
        return (response.status === 401 && response.headers.get('www-authenticate')) || undefined;
      } catch {
        return undefined;
      }
    },
  };
}

/** Error codes that show, anywhere in the chain of causes, that there was no connection. */
const NOT_CONNECTED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ERR_PROXY_\w+|ERR_TLS_\w+|ERR_SSL_\w+|\w*CERT\w*|UNABLE_TO_\w+|EPROTO)$/;

function isArrivalPossible(error: unknown) {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if (at instanceof ConnectTimeout || at instanceof UnsendableHeader) return false;
    if (NOT_CONNECTED.test(getErrorCode(at) ?? '')) return false;
    if (at instanceof AggregateError) return at.errors.some(isArrivalPossible);
  }
  return true;
}

// URLs that a server names are fetched like client documents: at public addresses only (§14). URLs that the operator configures,
// the server's own and that of an authorization server, may be anywhere. A server on this machine may name others on the same
// machine, since no outsider can have configured it.

function isOperatorsWord(url: string, { url: serverUrl, auth }: ConnectionServer) {
  const { origin, hostname } = new URL(url);
  if (auth.allowPrivate) return true;
  if (isOnThisMachine(new URL(serverUrl).hostname) && isOnThisMachine(hostname)) return true;
  return origin === new URL(serverUrl).origin || isNamed(url, auth);
}

/**
 * Says why tokens and codes must not go to a URL; undefined if they may. Only https keeps them secret. A server on this machine may have
 * endpoints on it without https.
 */
export function findUrlProblem(url: unknown, { url: serverUrl, auth }: ConnectionServer) {
  if (typeof url !== 'string' || !URL.canParse(url)) return `${quote(url, 200)}, which is no URL`;
  // Parsers drop or escape other characters: the address that is shown and compared would differ from the target.
  if (!/^[\x21-\x7e]{1,2048}$/.test(url))
    return 'a URL that has more than 2048 characters, or others than visible ASCII (RFC 3986)';
  const { hostname, username, password, hash, protocol } = new URL(url);
  if (username !== '' || password !== '' || hash !== '') return 'a URL with a user or a fragment';
  // A trailing dot (the DNS root) gives the same host a different origin.
  if (hostname.endsWith('.')) return `${quote(url, 200)}, whose host ends in a dot`;
  if (protocol === 'https:') return undefined;
  const isOurs = isOnThisMachine(new URL(serverUrl).hostname) || isNamed(url, auth);
  return isSafeForTokens(url) && isOurs ? undefined : `${quote(url, 200)}, which is not https`;
}

const isNamed = (url: string, { authorizationServer }: ConnectionServer['auth']) =>
  Object.values(authorizationServer ?? {}).some(
    (named) => URL.canParse(named) && new URL(named).origin === new URL(url).origin,
  );
