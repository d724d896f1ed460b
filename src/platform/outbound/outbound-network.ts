// §14: requests to other servers, through a proxy where one is set.
import type { Duplex } from 'node:stream';
import type { Fetch } from '../fetch-with-limits.ts';
import { type FetchOptions, openFetch } from './fetch.ts';
import { createProxyChoice } from './proxy-choice.ts';
import { connectThrough } from './tunnel.ts';

export interface OutboundNetwork {
  /** For what the settings name: the provider and its key set. */
  readonly fetch: Fetch;
  /** For the hosts that client ID metadata documents name. */
  readonly openTunnel: OpenTunnel;
  /** Ends requests that are under way; a tunnel is its owner's. */
  close(): void;
}

/**
 * A connection to the host through the proxy, which resolves its name; undefined where the host is
 * to be reached directly. The promise is rejected when the proxy refuses.
 */
export type OpenTunnel = (
  host: string,
  port: number,
  signal: AbortSignal,
) => Promise<Duplex> | undefined;

export function openOutboundNetwork(options: FetchOptions): OutboundNetwork {
  const chooseProxy = createProxyChoice(options.outbound);
  const { fetch, close } = openFetch(options);
  return {
    fetch,
    openTunnel(host, port, signal) {
      const proxy = chooseProxy(new URL(`https://${host}:${port}`));
      return proxy === undefined ? undefined : connectThrough(proxy, `${host}:${port}`, signal);
    },
    close,
  };
}
