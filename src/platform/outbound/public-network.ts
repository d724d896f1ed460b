// §4.6, §24: requests to hosts named by clients or servers, which must be public. Tests pass their own network, in which a
// public address leads to a local server.
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import { BlockList, connect, isIP, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { normalizeHost } from '../address.ts';
import type { Clock } from '../clock.ts';
import { getErrorCode } from '../error-code.ts';
import { decodeBody } from '../http-client/content-coding.ts';
import { createWorkQueue } from '../work-queue.ts';
import type { OpenTunnel } from './outbound-network.ts';

export interface Network {
  /** Tried first; undefined if no proxy is configured. */
  readonly tunnel?: OpenTunnel;
  /** Resolves all IPv4 and IPv6 addresses of a host, from DNS servers only (no /etc/hosts). */
  resolve(host: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Opens a TCP connection without resolving a name. */
  dial(target: DialTarget): Promise<Socket>;
  /** PEM of trusted certificate authorities. Default: Node's own. */
  readonly ca?: string;
}

interface DialTarget {
  /** Candidate addresses; the first one to answer is used. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** Cancels the attempt; an open connection belongs to the caller. */
  readonly signal: AbortSignal;
}

/** Milliseconds before the next address is tried in parallel. */
const ATTEMPT_MS = 1000;

/** `dnsServers` defaults to the system's; entries look like `127.0.0.1:5353`. */
export function createPublicNetwork({
  clock,
  tunnel,
  dnsServers,
  maxLookups = MAX_AT_ONCE,
}: {
  readonly clock: Clock;
  readonly tunnel?: OpenTunnel;
  readonly dnsServers?: readonly string[];
  /** Concurrent lookups; further ones wait. */
  readonly maxLookups?: number;
}): Network {
  const lookups = createWorkQueue({
    maxRunning: maxLookups,
    maxWaiting: MAX_WAITING,
    createRefusal: () => new Error('too many lookups are waiting'),
  });

  return {
    ...(tunnel && { tunnel }),
    resolve: (host, signal) =>
      lookups.run(() => lookUp(clock, host, signal, dnsServers), { signal }),

    dial: ({ addresses, port, signal }) =>
      new Promise((resolve, reject) => {
        const pinned = addresses.map((address) => ({ address, family: isIP(address) }));
        const socket = connect({
          // A placeholder: `lookup` returns the addresses that are already resolved.
          host: 'pinned.invalid',
          lookup: (_host, _options, done) => done(null, pinned),
          autoSelectFamily: true,
          autoSelectFamilyAttemptTimeout: ATTEMPT_MS,
          port,
        });
        // The `signal` option would also destroy the socket under a TLS handshake, which crashes Node (20.20).
        const end = () => socket.destroy(new Error('the attempt was ended'));
        signal.addEventListener('abort', end);
        if (signal.aborted) end();
        socket
          .once('connect', () => {
            signal.removeEventListener('abort', end);
            resolve(socket);
          })
          .on('error', reject);
      }),
  };
}

// Strangers choose these hosts, so they get their own resolver. The system resolver has a few threads for the whole process, and a
// name whose servers stay silent occupies one for half a minute, while calls to the provider wait behind it.

/** For both address families together, whatever the number of DNS servers. */
const TIMEOUT_MS = 2000;
const MAX_AT_ONCE = 8;
const MAX_WAITING = 24;

async function lookUp(
  clock: Clock,
  host: string,
  signal: AbortSignal,
  servers: readonly string[] | undefined,
): Promise<readonly string[]> {
  // Each lookup has its own resolver, so that it can be cancelled alone and uses the current DNS servers.
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 1 });
  if (servers !== undefined) resolver.setServers(servers);
  const cancel = () => resolver.cancel();
  const stopTimer = clock.after(TIMEOUT_MS, cancel);
  signal.addEventListener('abort', cancel);
  try {
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const addresses = answers.flatMap((answer) =>
      answer.status === 'fulfilled' ? answer.value : [],
    );
    return addresses.length > 0 ? addresses : throwMostTelling(answers, host);
  } finally {
    stopTimer();
    signal.removeEventListener('abort', cancel);
  }
}

/** @throws the most informative error: a missing record of one address family says little. */
function throwMostTelling(answers: readonly PromiseSettledResult<unknown>[], host: string): never {
  const errors = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
  const telling = errors.find((error) => getErrorCode(error) !== 'ENODATA') ?? errors[0];
  const code = getErrorCode(telling);
  if (TIMED_OUT.has(code))
    throw new Error(`ETIMEOUT: no DNS server answered for ${host} within ${TIMEOUT_MS / 1000} s`);
  // Node's own message would be "queryA ENOTFOUND".
  throw code === undefined ? telling : new Error(`${code}: DNS has no address for ${host}`);
}

const TIMED_OUT: ReadonlySet<unknown> = new Set(['ETIMEOUT', 'ECANCELLED']);

// §4.6, §24, OAuth Client ID Metadata Document (draft) §8.6: connects to an untrusted host.

/** The host is not on the public internet. The cause may reveal internal names: for the log only. */
export class HostNotPublic extends Error {
  override readonly name = 'HostNotPublic';
}

/**
 * Opens a TLS connection and verifies the host's certificate. The name is resolved once; all of its addresses must be public, and
 * the connection goes to one of them. If there is a proxy, it resolves the name itself, and decides which hosts can be reached.
 *
 * @throws HostNotPublic for a host without public addresses, otherwise the connection error.
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
  const socket = connectTls({
    socket: connection,
    // TLS server names are never addresses (RFC 6066 §3).
    ...(isLiteral ? { host: name } : { servername: name }),
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
    ...(network.ca !== undefined && { ca: network.ca }),
  });
  // The pending promise reports the error; later ones are ignored.
  socket.on('error', () => {});
  signal.addEventListener('abort', () => socket.destroy());
  await once(socket, 'secureConnect');
  return socket;
}

async function dialPublic(name: string, port: number, network: Network, signal: AbortSignal) {
  let addresses: readonly string[] = [name];
  if (isIP(name) === 0) {
    addresses = await network.resolve(name, signal).catch((cause: unknown) => {
      throw createRefusal(name, cause);
    });
    if (addresses.length === 0) throw createRefusal(name, 'it has no address');
    requirePublic(name, addresses);
  }
  signal.throwIfAborted();
  return network.dial({ addresses, port, signal });
}

/** Refuses the host if even one of its addresses is not public. */
function requirePublic(host: string, addresses: readonly string[]) {
  const privateAddress = addresses.find((address) => !isPublicAddress(address));
  if (privateAddress !== undefined)
    throw createRefusal(host, `it has the address ${privateAddress}`);
}

/** Uses the same message in all cases, so that strangers cannot probe for internal names. */
const createRefusal = (host: string, cause: unknown) =>
  new HostNotPublic(`The host ${host} does not resolve to public addresses only`, { cause });

// §4.6, OAuth Client ID Metadata Document (draft) §8.6: determines which addresses are public.

/** IANA's registry of special-purpose IPv4 addresses (RFC 6890), and similar ones. */
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
 * Global unicast IPv6. Excludes ::, ::1, mapped IPv4, NAT64, unique local, link-local, site-local, multicast and unassigned
 * ranges.
 */
const GLOBAL_IPV6 = ['2000::/3'];

/** Special ranges within global unicast; 6to4 and Teredo embed IPv4 addresses. */
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

/** True for an address on the public internet; false for anything else. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !specialIpv4.check(address, 'ipv4');
  // A scope id (%eth0) occurs on local links only.
  if (family !== 6 || address.includes('%')) return false;
  return globalIpv6.check(address, 'ipv6') && !specialIpv6.check(address, 'ipv6');
}

function createBlockList(networks: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', prefix] = network.split('/');
    list.addSubnet(address, Number(prefix), family);
  }
  return list;
}

// §4.6, §24: sends one request to an untrusted host.

interface PublicRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Called when the request is sent. If it was not called, the failed request reached no server. */
  onConnected?(): void;
}

export interface PublicResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The body; the caller must read it, and limit its size. */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Uses a separate connection, which the signal closes. Redirects are not followed.
 *
 * @throws HostNotPublic, otherwise the connection error.
 */
export async function requestPublicHost(
  url: URL,
  { method = 'GET', headers, body, onConnected }: PublicRequest,
  network: Network,
  signal: AbortSignal,
): Promise<PublicResponse> {
  const socket = await openPublicConnection(
    url.hostname,
    Number(url.port) || HTTPS_PORT,
    network,
    signal,
  );
  onConnected?.();
  return new Promise((resolve, reject) => {
    request({
      createConnection: () => socket,
      method,
      path: url.pathname + url.search,
      headers: {
        Host: url.host,
        Accept: 'application/json',
        'Accept-Encoding': 'identity',
        // Some hosts refuse requests without a user agent.
        'User-Agent': 'postern',
        ...headers,
        ...(body !== undefined && { 'Content-Length': String(Buffer.byteLength(body)) }),
      },
    })
      .once('response', (response) => {
        const { statusCode: status = 0, headers: received } = response;
        const coding = received['content-encoding'] ?? '';
        resolve({ status, headers: received, body: decodeBody(response, coding) });
      })
      .on('error', reject)
      .end(body);
  });
}

const HTTPS_PORT = 443;
