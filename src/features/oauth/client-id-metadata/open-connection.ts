// §4.6, OAuth Client ID Metadata Document (draft) §8.6: a connection to a host that anybody
// could have named.
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { createUnreachableError } from './client-document-refused.ts';
import type { Network } from './network.ts';
import { isPublicAddress } from './public-address.ts';

const PORT = 443;

/**
 * TLS with the host, which has to prove its name. The name is resolved once; every one of its
 * addresses must be public, and the connection goes to one of them. Through a proxy, which
 * resolves the name itself, only hosts are reached that an operator named.
 *
 * @throws ClientDocumentRefused for a host without public addresses, else what went wrong.
 */
export async function openConnection(
  host: string,
  network: Network,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const connection = await (network.tunnel?.(host, PORT, signal) ??
    dialPublic(host, network, signal));
  if (signal.aborted) connection.destroy();
  signal.throwIfAborted();
  const socket = connect({
    socket: connection,
    servername: host,
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
    ...(network.ca !== undefined && { ca: network.ca }),
  });
  destroyOnAbort(signal, socket);
  await once(socket, 'secureConnect');
  return socket;
}

async function dialPublic(host: string, network: Network, signal: AbortSignal) {
  const addresses = await resolvePublicAddresses(host, network, signal);
  signal.throwIfAborted();
  return network.dial({ addresses, port: PORT, signal });
}

/** One that is not public among them is enough: the host, or its name, is not what it should be. */
async function resolvePublicAddresses(
  host: string,
  network: Network,
  signal: AbortSignal,
): Promise<readonly string[]> {
  // The same words for every case: they would tell strangers which names exist inside.
  const problem = `The host ${host} of the client_id does not resolve to public addresses only.`;
  const addresses = await network.resolve(host, signal).catch((cause: unknown) => {
    throw createUnreachableError(host, problem, cause);
  });
  if (addresses.length === 0) throw createUnreachableError(host, problem, 'it has no address');
  const privateAddress = addresses.find((address) => !isPublicAddress(address));
  if (privateAddress !== undefined)
    throw createUnreachableError(host, problem, `it has the address ${privateAddress}`);
  return addresses;
}

function destroyOnAbort(signal: AbortSignal, socket: TLSSocket): void {
  // Whoever waits for the socket has its error; afterwards it is nobody's.
  socket.on('error', () => {});
  signal.addEventListener('abort', () => socket.destroy());
}
