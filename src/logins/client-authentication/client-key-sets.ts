// RFC 7517: the keys of a client that names where they are. Each client has a set of its own, so that a host that is slow holds
// up nobody else.

import type { Clock } from '../../platform/clock.ts';
import type { Fetch } from '../../platform/fetch-with-limits.ts';
import type { Log } from '../../platform/log.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import { createKeySet, type KeySet } from '../auth/key-set.ts';
import type { MachineClients } from '../auth/machine-clients.ts';

export interface ClientKeySets {
  get(url: string): KeySet;
  close(): void;
}

export interface ClientKeySetsDeps {
  readonly machineClients: Pick<MachineClients, 'list' | 'onChange'>;
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function createClientKeySets(deps: ClientKeySetsDeps): ClientKeySets {
  const byUrl = new Map<string, KeySet>();

  function open(url: string): KeySet {
    const keySet = createKeySet(deps, {
      url,
      metadata: undefined,
      owner: {
        name: `The key set of a client (${stripUri(url)})`,
        advice: 'Check its "jwksUri" in the configuration file, and the outbound network.',
      },
    });
    keySet.start();
    byUrl.set(url, keySet);
    return keySet;
  }

  deps.machineClients.onChange(() => {
    const used = new Set(
      deps.machineClients
        .list()
        .flatMap(({ credentials }) => (credentials.kind === 'keysUrl' ? [credentials.url] : [])),
    );
    for (const [url, keySet] of byUrl) {
      if (used.has(url)) continue;
      keySet.close();
      byUrl.delete(url);
    }
  });

  return {
    get: (url) => byUrl.get(url) ?? open(url),
    close() {
      for (const keySet of byUrl.values()) keySet.close();
    },
  };
}
