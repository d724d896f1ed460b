// §4.6, OAuth Client ID Metadata Document (draft) §5, §8.6, §8.7: one GET to a host that
// anybody could have named.

import type { IncomingHttpHeaders } from 'node:http';
import { rejectOnAbort } from '../../platform/cancellation.ts';
import type { Clock } from '../../platform/clock.ts';
import { readBody } from '../../platform/fetch-with-limits.ts';
import type { Network, PublicResponse } from '../../platform/outbound/public-network.ts';
import { HostNotPublic, requestPublicHost } from '../../platform/outbound/public-network.ts';

import { ClientDocumentRefused, createUnreachableError } from './client-document.ts';

export interface FetchedDocument {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** For everything: the name, the connection, the answer. */
const TIMEOUT_MS = 5000;
/** The draft recommends 5 kB; real documents with many members need not be that small. */
const MAX_BYTES = 32_768;

const JSON_TYPE = /^application\/([\w!#$&^.-]+\+)?json[ \t]*(;|$)/i;

/**
 * The document at the URL of a client id. Nothing is followed.
 *
 * @throws ClientDocumentRefused
 */
export async function fetchDocument(
  url: URL,
  network: Network,
  clock: Clock,
): Promise<FetchedDocument> {
  const abort = new AbortController();
  const cancel = clock.after(TIMEOUT_MS, () => {
    const problem = `did not arrive in full within ${TIMEOUT_MS / 1000} s`;
    abort.abort(createUnreachableError(url.hostname, describeProblem(url, problem), 'ETIMEDOUT'));
  });
  try {
    return await Promise.race([
      requestDocument(url, network, abort.signal),
      rejectOnAbort(abort.signal),
    ]);
  } catch (cause) {
    if (cause instanceof ClientDocumentRefused) throw cause;
    if (cause instanceof HostNotPublic) throw describeInnerHost(url.hostname, cause);
    // The place where the connection failed is for the log: it would tell strangers of the network inside.
    throw createUnreachableError(url.hostname, describeProblem(url, 'cannot be fetched'), cause);
  } finally {
    cancel();
    // Closes whatever is open.
    abort.abort();
  }
}

async function requestDocument(
  url: URL,
  network: Network,
  signal: AbortSignal,
): Promise<FetchedDocument> {
  const response = await requestPublicHost(url, {}, network, signal);
  const problem = findResponseProblem(response);
  if (problem !== undefined) throw createRefusal(url, problem);
  const body = await readBody(response.body, MAX_BYTES, () =>
    createRefusal(url, `is longer than ${MAX_BYTES} bytes`),
  );
  return { headers: response.headers, body };
}

const describeInnerHost = (host: string, { cause }: HostNotPublic): ClientDocumentRefused =>
  createUnreachableError(
    host,
    `The host ${host} of the client_id does not resolve to public addresses only.`,
    cause,
  );

function findResponseProblem({ status, headers }: PublicResponse): string | undefined {
  if (status >= 300 && status < 400) {
    return `answered with a redirect (${status}), which is not followed`;
  }
  if (status !== 200) return `answered ${status}`;
  return JSON_TYPE.test(headers['content-type'] ?? '')
    ? undefined
    : 'is not served as application/json';
}

const createRefusal = (url: URL, problem: string) =>
  new ClientDocumentRefused(describeProblem(url, problem));

const describeProblem = (url: URL, problem: string): string =>
  `The client's metadata document ${url.href} ${problem}.`;
