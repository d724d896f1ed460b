// §4.6, OAuth Client ID Metadata Document (draft) §5, §8.6, §8.7: one GET to a host that
// anybody could have named.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Clock } from '../../platform/clock.ts';
import { HostNotPublic } from '../../platform/outbound/public-connection.ts';
import type { Network } from '../../platform/outbound/public-network.ts';
import { requestPublicHost } from '../../platform/outbound/public-request.ts';
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
    // Where the connection failed is for the log: it would tell strangers of the network inside.
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
  return { headers: response.headers, body: await readBody(url, response) };
}

const describeInnerHost = (host: string, { cause }: HostNotPublic): ClientDocumentRefused =>
  createUnreachableError(
    host,
    `The host ${host} of the client_id does not resolve to public addresses only.`,
    cause,
  );

function findResponseProblem({ statusCode = 0, headers }: IncomingMessage): string | undefined {
  if (statusCode >= 300 && statusCode < 400) {
    return `answered with a redirect (${statusCode}), which is not followed`;
  }
  if (statusCode !== 200) return `answered ${statusCode}`;
  if (!JSON_TYPE.test(headers['content-type'] ?? '')) return 'is not served as application/json';
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity';
  return encoding === 'identity' ? undefined : 'is served compressed, which was not asked for';
}

async function readBody(url: URL, response: IncomingMessage): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response) {
    length += chunk.length;
    if (length > MAX_BYTES) throw createRefusal(url, `is longer than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const createRefusal = (url: URL, problem: string) =>
  new ClientDocumentRefused(describeProblem(url, problem));

const describeProblem = (url: URL, problem: string): string =>
  `The client's metadata document ${url.href} ${problem}.`;

const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });
