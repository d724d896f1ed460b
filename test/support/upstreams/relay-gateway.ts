// A gateway with servers behind it, and nothing of its own.

import { loadConfig } from '../../../src/config/load.ts';
import { type Clock, systemClock } from '../../../src/platform/clock.ts';

import { openStore } from '../../../src/store/open.ts';
import { startGateway, type TestGateway } from '../gateway/gateway.ts';
import { collectLog } from '../gateway/log.ts';
import { createTemporaryFolder } from '../temporary-folder.ts';
import { readFile } from './gateway-file.ts';

export interface RelayGateway extends TestGateway {
  /** Messages of and to the other replicas are lost from now on, as after a crash; or no longer. */
  cutOff(isCutOff?: boolean): void;
  /** How many were lost. */
  countLost(): number;
}

export interface RelayGatewayOptions {
  /** By name; a URL, or what the file says of a program. */
  readonly servers: Readonly<Record<string, string | object>>;
  readonly clock?: Clock;
  readonly timeoutMs?: number;
  /** Whether servers are told clients' roots; `true` unless given. */
  readonly roots?: boolean | undefined;
  /** With `REDIS_URL` it is one of several replicas. */
  readonly env?: Readonly<Record<string, string>>;
}

export async function startRelayGateway({
  servers,
  clock = systemClock,
  timeoutMs = 60_000,
  roots = true,
  env = {},
}: RelayGatewayOptions): Promise<RelayGateway> {
  const mcpServers = Object.fromEntries(
    Object.entries(servers).map(([name, server]) => {
      const reached = typeof server === 'string' ? { url: server } : server;
      return [name, { ...reached, timeout: timeoutMs, roots }];
    }),
  );
  const file = await readFile({ builtIn: false, mcpServers });
  const folder = await createTemporaryFolder();
  const config = loadConfig({ AUTH_REQUIRED: 'false', DATA_DIR: folder.path, ...env });
  const store = await openStore(config, { clock, log: collectLog().log });
  let isCutOffNow = false;
  let lost = 0;
  const isLost = () => {
    if (isCutOffNow) lost += 1;
    return isCutOffNow;
  };
  const gateway = await startGateway({
    env,
    deps: {
      file,
      clock,
      store: {
        ...store,
        publish: async (...message) => (isLost() ? undefined : store.publish(...message)),
        subscribe: (channel, listener) =>
          store.subscribe(channel, (text) => isLost() || listener(text)),
      },
    },
  });

  return {
    ...gateway,
    cutOff(isCutOff = true) {
      isCutOffNow = isCutOff;
    },
    countLost: () => lost,
    async close() {
      await gateway.close();
      await folder.close();
    },
  };
}
