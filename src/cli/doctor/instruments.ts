// With what doctor asks: requests that go out as the gateway's do, and what is noted of the answers.

import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { OpenTunnel, OutboundNetwork } from '../../platform/outbound/outbound-network.ts';
import type { OutboundConfig } from '../../platform/outbound/proxy-choice.ts';
import { createProxyChoice } from '../../platform/outbound/proxy-choice.ts';
import { createCollectingLog } from './collecting-log.ts';
import { type ObservedClocks, observeClocks } from './network/observed-clocks.ts';
import { createProbe, type Probe } from './network/probe.ts';

export interface Instruments {
  readonly probe: Probe;
  readonly clocks: ObservedClocks;
  readonly tunnel: OpenTunnel;
  readonly clock: Clock;
  /** Of the gateway's parts: nothing of it is printed. */
  readonly log: Log;
  /** A user's access token. A secret. */
  readonly token: string | undefined;
  /** Whether requests to a URL go out by a proxy, which then resolves names. */
  readonly isProxied: (url: string) => boolean;
}

export interface InstrumentsOptions {
  readonly outbound: OutboundConfig;
  readonly network: OutboundNetwork;
  readonly clock: Clock;
  readonly token: string | undefined;
}

export function createInstruments(options: InstrumentsOptions): Instruments {
  const { outbound, network, clock, token } = options;
  const clocks = observeClocks(network.fetch, clock);
  const chooseProxy = createProxyChoice(outbound);
  return {
    probe: createProbe(clocks.fetch, clock),
    clocks,
    tunnel: network.openTunnel,
    clock,
    log: createCollectingLog().log,
    token,
    isProxied: (url) => chooseProxy(new URL(url)) !== undefined,
  };
}
