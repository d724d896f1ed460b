// §4.6, §24, OAuth Client ID Metadata Document (draft) §8.6: a connection to a host that anybody could have named.
import { once } from 'node:events';
import { BlockList, isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { normalizeHost } from '../address.ts';
import type { Network } from './public-network.ts';

/** The host is not one of the public internet. The cause may name what is inside the network: it is for the log. */
export class HostNotPublic extends Error {
  override readonly name = 'HostNotPublic';
}

/**
 * TLS with the host, which has to prove its name. The name is resolved once; every one of its
 * addresses must be public, and the connection goes to one of them. Through a proxy, which
 * resolves the name itself, it is the proxy that says which hosts are reached.
 *
 * @throws HostNotPublic for a host without public addresses, else what went wrong.
 */
export async function openPublicConnection(
  host: string,
  port: number,
  network: Network,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const name = normalizeHost(host);
  const isLiteral = isIP(name) !== 0;
  if (isLiteral) requirePublic(host, [name]);
  const connection = await (network.tunnel?.(host, port, signal) ??
    dialPublic(name, port, network, signal));
  if (signal.aborted) connection.destroy();
  signal.throwIfAborted();
  const socket = connect({
    socket: connection,
    // TLS names no addresses (RFC 6066 §3).
    ...(isLiteral ? { host: name } : { servername: name }),
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
    ...(network.ca !== undefined && { ca: network.ca }),
  });
  destroyOnAbort(signal, socket);
  await once(socket, 'secureConnect');
  return socket;
}

async function dialPublic(name: string, port: number, network: Network, signal: AbortSignal) {
  const addresses = isIP(name) !== 0 ? [name] : await resolvePublicAddresses(name, network, signal);
  signal.throwIfAborted();
  return network.dial({ addresses, port, signal });
}

async function resolvePublicAddresses(
  host: string,
  network: Network,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const addresses = await network.resolve(host, signal).catch((cause: unknown) => {
    throw createRefusal(host, cause);
  });
  if (addresses.length === 0) throw createRefusal(host, 'it has no address');
  requirePublic(host, addresses);
  return addresses;
}

/** One that is not public among them is enough: the host, or its name, is not what it should be. */
function requirePublic(host: string, addresses: readonly string[]): void {
  const privateAddress = addresses.find((address) => !isPublicAddress(address));
  if (privateAddress !== undefined)
    throw createRefusal(host, `it has the address ${privateAddress}`);
}

/** The same words for every case: they would tell strangers which names exist inside. */
const createRefusal = (host: string, cause: unknown) =>
  new HostNotPublic(`The host ${host} does not resolve to public addresses only`, { cause });

function destroyOnAbort(signal: AbortSignal, socket: TLSSocket): void {
  // Whoever waits for the socket has its error; afterwards it is nobody's.
  socket.on('error', () => {});
  signal.addEventListener('abort', () => socket.destroy());
}

// §4.6, OAuth Client ID Metadata Document (draft) §8.6: addresses that may be connected to.

/** IANA's registry of special-purpose IPv4 addresses (RFC 6890), and what is like them. */
const SPECIAL_IPV4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // carrier-grade NAT
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // the host of a virtual machine at Azure
  '169.254.0.0/16', // link-local, metadata services
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // AMT
  '192.88.99.0/24', // 6to4 relays
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
];

/**
 * All of IPv6 that is global unicast; outside of it lie ::, ::1, mapped IPv4, NAT64, unique local,
 * link-local, site-local, multicast and what nobody has assigned.
 */
const GLOBAL_IPV6 = ['2000::/3'];

/** What of it is special; 6to4 and Teredo carry IPv4 addresses inside. */
const SPECIAL_IPV6 = [
  '2001::/23', // protocol assignments: Teredo, benchmarks, ORCHID
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4
  '2620:4f:8000::/48', // AS112
  '3ffe::/16', // 6bone, returned
  '3fff::/20', // documentation
];

const specialIpv4 = createBlockList(SPECIAL_IPV4, 'ipv4');
const globalIpv6 = createBlockList(GLOBAL_IPV6, 'ipv6');
const specialIpv6 = createBlockList(SPECIAL_IPV6, 'ipv6');

/** Whether an address belongs to the public internet; false for anything that is no address. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !specialIpv4.check(address, 'ipv4');
    case 6:
      // A scope id (%eth0) exists on local links only.
      return (
        !address.includes('%') &&
        globalIpv6.check(address, 'ipv6') &&
        !specialIpv6.check(address, 'ipv6')
      );
    default:
      return false;
  }
}

function createBlockList(networks: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    list.addSubnet(address, Number(prefix), family);
  }
  return list;
}
