// §4.6, §24: the way out to a host that others named: clients, and servers of what they say of themselves. A test brings its
// own, with a public address that leads to a server of its own.

import { Resolver } from 'node:dns/promises';
import { connect, isIP, type Socket } from 'node:net';
import type { Clock } from '../clock.ts';
import { getErrorCode } from '../error-code.ts';
import { createWorkQueue } from '../work-queue.ts';
import type { OpenTunnel } from './outbound-network.ts';

export interface Network {
  /** The way by a proxy, where there is one; it comes first. */
  readonly tunnel?: OpenTunnel;
  /** All addresses of a host. */
  readonly resolve: Resolve;
  /** A TCP connection, established; resolves no name again. */
  dial(target: DialTarget): Promise<Socket>;
  /** PEM of the authorities that may vouch for a host; by default those of Node. */
  readonly ca?: string;
}

export interface DialTarget {
  /** One of these, whichever answers. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** Ends the attempt; the connection is the caller's to end. */
  readonly signal: AbortSignal;
}

/** Milliseconds that an address has before the next one is tried, too. */
const ATTEMPT_MS = 1000;

export interface PublicNetworkOptions {
  readonly clock: Clock;
  readonly tunnel?: OpenTunnel;
  /** Those of the system unless given. */
  readonly dnsServers?: readonly string[];
  /** Of hosts at the same moment; more of them wait for a while. */
  readonly maxLookups?: number;
}

export const createPublicNetwork = ({
  clock,
  tunnel,
  dnsServers,
  maxLookups = MAX_AT_ONCE,
}: PublicNetworkOptions): Network => ({
  ...(tunnel && { tunnel }),
  resolve: createResolver(clock, maxLookups, dnsServers),

  dial: ({ addresses, port, signal }) =>
    new Promise((resolve, reject) => {
      const pinned = addresses.map((address) => ({ address, family: isIP(address) }));
      const socket = connect({
        // Stands for the addresses: what it resolves to is given.
        host: 'pinned.invalid',
        lookup: (_host, _options, done) => done(null, pinned),
        autoSelectFamily: true,
        autoSelectFamilyAttemptTimeout: ATTEMPT_MS,
        port,
      });
      // Not by an option: then it would also destroy the socket below TLS that was begun on it,
      // which crashes Node (20.20).
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
});

// Anybody can name these hosts, so they are looked up apart. The
// resolver of the system has a few threads for the whole process, and a name whose servers stay
// silent holds one of them for half a minute, while calls to the provider wait behind it.

/** All addresses of a host, of both families. It asks DNS servers only: no /etc/hosts. */
type Resolve = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

/** For both families and however many servers the system names. */
const TIMEOUT_MS = 2000;
const MAX_AT_ONCE = 8;
const MAX_WAITING = 24;

/** `servers` are those of the system unless given, such as `127.0.0.1:5353`. */
function createResolver(
  clock: Clock,
  maxRunning: number,
  servers: readonly string[] | undefined,
): Resolve {
  const queue = createWorkQueue({
    maxRunning,
    maxWaiting: MAX_WAITING,
    createRefusal: () => new Error('too many lookups are waiting'),
  });
  const lookup = createLookup(clock, servers);
  return (host, signal) => queue.run(() => lookup(host, signal), { signal });
}

const createLookup = (clock: Clock, servers?: readonly string[]): Resolve =>
  async function lookup(host, signal) {
    // One for each look-up: it can be cancelled alone, and knows the servers of the moment.
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
  };

/** @throws the error that says most: that there is none of one family says little. */
function throwMostTelling(answers: readonly PromiseSettledResult<unknown>[], host: string): never {
  const errors = answers.flatMap((answer) => (answer.status === 'rejected' ? [answer.reason] : []));
  const telling = errors.find((error) => getErrorCode(error) !== 'ENODATA') ?? errors[0];
  const code = getErrorCode(telling);
  if (TIMED_OUT.has(code)) {
    throw new Error(`ETIMEOUT: no DNS server answered for ${host} within ${TIMEOUT_MS / 1000} s`);
  }
  // Node's own words are "queryA ENOTFOUND".
  throw code === undefined ? telling : new Error(`${code}: DNS has no address for ${host}`);
}

const TIMED_OUT: ReadonlySet<unknown> = new Set(['ETIMEOUT', 'ECANCELLED']);
