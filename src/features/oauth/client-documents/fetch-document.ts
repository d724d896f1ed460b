// Spec §4.6, OAuth Client ID Metadata Document (draft) §5, §8.6, §8.7: one GET to a host that
// anybody could have named.
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { connect, type TLSSocket } from 'node:tls';
import type { Clock } from '../../../core/clock.ts';
import type { Network } from './network.ts';
import { isPublicAddress } from './public-address.ts';
import { ClientDocumentRefused, refuse } from './refusal.ts';

export interface FetchedDocument {
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** For everything: the name, the connection, the answer. */
const TIMEOUT_MS = 5000;
/** The draft recommends 5 kB; real documents with many members need not be that small. */
const MAX_BYTES = 32_768;
const PORT = 443;

const JSON_TYPE = /^application\/([\w!#$&^.-]+\+)?json[ \t]*(;|$)/i;

/**
 * The document at the URL of a client id. The host's name is resolved once; every one of its
 * addresses must be public, and the connection goes to one of them. Nothing is followed.
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
    abort.abort(refusalOf(url, `was not there in full within ${TIMEOUT_MS / 1000} s`));
  });
  try {
    return await Promise.race([exchange(url, network, abort.signal), aborted(abort.signal)]);
  } catch (cause) {
    if (cause instanceof ClientDocumentRefused) throw cause;
    // Where the connection failed is for the log: it would tell strangers of the network inside.
    throw refusalOf(url, 'cannot be fetched', cause);
  } finally {
    cancel();
    // Closes whatever is open.
    abort.abort();
  }
}

async function exchange(url: URL, network: Network, signal: AbortSignal): Promise<FetchedDocument> {
  const addresses = await publicAddresses(url.hostname, network, signal);
  signal.throwIfAborted();
  const connection = await network.dial({ addresses, port: PORT, signal });
  const socket = connect({
    socket: connection,
    servername: url.hostname,
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
    ...(network.ca !== undefined && { ca: network.ca }),
  });
  closeOn(signal, socket);
  await once(socket, 'secureConnect');
  const answer = await answerOf(url, socket);
  const problem = answerProblem(answer);
  if (problem !== undefined) throw refusalOf(url, problem);
  return { headers: answer.headers, body: await readBody(url, answer) };
}

/** One that is not public among them is enough: the host, or its name, is not what it should be. */
async function publicAddresses(
  host: string,
  network: Network,
  signal: AbortSignal,
): Promise<readonly string[]> {
  // The same words for every case: they would tell strangers which names exist inside.
  const said = `The host ${host} of the client_id does not resolve to public addresses only.`;
  const addresses = await network
    .resolve(host, signal)
    .catch((cause: unknown) => refuse(said, cause));
  if (addresses.length === 0) refuse(said, 'it has no address');
  const inner = addresses.find((address) => !isPublicAddress(address));
  return inner === undefined ? addresses : refuse(said, `it has the address ${inner}`);
}

const answerOf = (url: URL, socket: TLSSocket): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request({
      createConnection: () => socket,
      path: url.pathname,
      headers: {
        Host: url.hostname,
        Accept: 'application/json',
        'Accept-Encoding': 'identity',
        // Some hosts turn away whoever does not say what they are.
        'User-Agent': 'postern',
      },
    })
      .once('response', resolve)
      .on('error', reject)
      .end();
  });

function answerProblem({ statusCode = 0, headers }: IncomingMessage): string | undefined {
  if (statusCode >= 300 && statusCode < 400) {
    return `answered with a redirect (${statusCode}), which is not followed`;
  }
  if (statusCode !== 200) return `answered ${statusCode}`;
  if (!JSON_TYPE.test(headers['content-type'] ?? '')) return 'is not served as application/json';
  const encoding = headers['content-encoding']?.toLowerCase() ?? 'identity';
  return encoding === 'identity' ? undefined : 'is served compressed, which was not asked for';
}

async function readBody(url: URL, answer: IncomingMessage): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of answer) {
    length += chunk.length;
    if (length > MAX_BYTES) throw refusalOf(url, `is longer than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const refusalOf = (url: URL, problem: string, cause?: unknown) =>
  new ClientDocumentRefused(`The client's metadata document ${url.href} ${problem}.`, { cause });

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason));
  });

function closeOn(signal: AbortSignal, socket: TLSSocket): void {
  // Whoever waits for the socket has its error; afterwards it is nobody's.
  socket.on('error', () => {});
  const close = () => socket.destroy();
  if (signal.aborted) close();
  else signal.addEventListener('abort', close);
}
