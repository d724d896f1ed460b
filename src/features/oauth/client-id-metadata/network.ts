// §4.6: the way out to a client's host. A test brings its own, with a public address that
// leads to a server of its own.
import { connect, isIP, type Socket } from 'node:net';
import type { Clock } from '../../../core/clock.ts';
import type { OpenTunnel } from '../../../core/outbound/outbound-network.ts';
import { createResolver, type Resolve } from './resolver.ts';

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
}

export const createPublicNetwork = ({
  clock,
  tunnel,
  dnsServers,
}: PublicNetworkOptions): Network => ({
  ...(tunnel && { tunnel }),
  resolve: createResolver(clock, dnsServers),

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
