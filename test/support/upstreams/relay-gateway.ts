// A gateway with servers behind it, whose calls go through the relay and nothing else.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../../src/core/clock.ts';
import { loadConfig } from '../../../src/core/config/load.ts';
import { noMetrics } from '../../../src/core/metrics/metrics.ts';
import { createSeal } from '../../../src/core/seal/seal.ts';
import { openStore } from '../../../src/core/store/open.ts';
import { createRelayCall } from '../../../src/features/upstreams/relay/relay-call.ts';
import { createSuspendedCalls } from '../../../src/features/upstreams/relay/suspended/suspended-calls.ts';
import { startGateway, type TestGateway } from '../gateway/gateway.ts';
import { collectLog, type LogLine } from '../gateway/log.ts';
import { openHttpUpstream } from './http-upstream.ts';
import { createRelayCatalog } from './relay-catalog.ts';

export interface RelayGateway extends TestGateway {
  /** Lines of the relay. */
  readonly relayLog: readonly LogLine[];
  /** As at a shutdown. */
  stopCalls(): Promise<void>;
  /** Messages of and to the other replicas are lost from now on, as after a crash. */
  cutOff(): void;
}

export interface RelayGatewayOptions {
  /** URLs by name. */
  readonly servers: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  readonly timeoutMs?: number;
  /** With `REDIS_URL` it is one of several replicas. */
  readonly env?: Readonly<Record<string, string>>;
}

export async function startRelayGateway({
  servers,
  clock = systemClock,
  timeoutMs = 60_000,
  env = {},
}: RelayGatewayOptions): Promise<RelayGateway> {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-relay-'));
  const config = loadConfig({ AUTH_REQUIRED: 'false', DATA_DIR: dataDir, ...env });
  const { log, lines } = collectLog();
  const store = await openStore(config, { clock, log });
  const seal = createSeal(['a secret of more than thirty-two characters']);
  const opened = await Promise.all(
    Object.entries(servers).map(([name, url]) =>
      openHttpUpstream({ name, url, timeoutMs }, { clock }),
    ),
  );
  let isCutOff = false;
  const suspendedCalls = createSuspendedCalls({
    store: {
      ...store,
      publish: async (...message) => (isCutOff ? undefined : store.publish(...message)),
      subscribe: (channel, listener) =>
        store.subscribe(channel, (text) => isCutOff || listener(text)),
    },
    getSeal: async () => seal,
    clock,
    log,
    metrics: noMetrics,
    keyPrefix: config.mcp.sessions.keyPrefix,
  });
  const relayCall = createRelayCall({ clock, log, suspendedCalls });
  const upstreams = Object.fromEntries(
    opened.map(({ upstream }) => [upstream.config.name, upstream]),
  );
  const catalog = createRelayCatalog(upstreams, relayCall);
  const gateway = await startGateway({ env, deps: { catalog, store, clock } });

  return {
    ...gateway,
    relayLog: lines,
    stopCalls: () => suspendedCalls.close(),
    cutOff() {
      isCutOff = true;
    },
    async close() {
      await suspendedCalls.close();
      await Promise.all(opened.map(({ close }) => close()));
      await gateway.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
