// The guards of the configuration file, each asked once, about a message in which there is nothing.

import { ConfigError } from '../../../config/problem.ts';
import { systemClock } from '../../../platform/clock.ts';
import { createGuards } from '../../../policy/guards/create-guards.ts';
import { noMetrics } from '../../../telemetry/metrics/metrics.ts';
import { listGuardServers } from '../../../upstreams/catalog/plan.ts';
import { GATEWAY_CALLER } from '../../../upstreams/upstream.ts';
import { openServers } from '../../setup/open-servers.ts';
import { type Found, failure, ok } from '../finding.ts';
import { createCollectingLog } from '../instruments.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

const CHECK = 'guard';

export async function checkGuards({ setup, env }: SettingsAtHand): Promise<Found> {
  const configs = setup?.file.guards;
  if (setup === undefined || configs === undefined) return undefined;
  const { log } = createCollectingLog();
  const areGuards = new Set(listGuardServers(setup.file));
  const guardServers = setup.file.servers.filter(({ name }) => areGuards.has(name));
  const servers = await openServers({ ...setup.file, servers: guardServers }, { env, log });
  const opened = new Map(guardServers.map((server) => [server.name, servers.openUpstream(server)]));
  try {
    const guards = await createGuards(configs, {
      clock: systemClock,
      fetch: servers.fetch,
      log,
      metrics: noMetrics,
      async askServer(name, { method, params, timeoutMs }) {
        const upstream = opened.get(name);
        if (upstream === undefined) throw new Error(`${name} is not there`);
        const signal = AbortSignal.timeout(timeoutMs);
        return upstream.request(GATEWAY_CALLER, {
          method,
          params,
          signal,
          trace: {},
          logLevel: undefined,
        });
      },
    });
    const facts = guards?.listGuards() ?? [];
    return await Promise.all(
      facts.map(async ({ name, kind, onError, check }) => {
        const problem = await check();
        if (problem === undefined) return ok(CHECK, `The guard ${name} (${kind}) answers.`);
        return failure(CHECK, {
          what: `The guard ${name} (${kind}) has failed: ${problem}.`,
          why:
            onError === 'refuse'
              ? 'What it should look at is refused.'
              : 'What it should look at passes ("onError": "pass").',
          setting: 'POSTERN_CONFIG',
          remedy: 'check that it runs, and what the configuration file says of it under "guards".',
        });
      }),
    );
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((what) => failure(CHECK, { what, setting: 'POSTERN_CONFIG' }));
  } finally {
    await Promise.all([...opened.values()].map((upstream) => upstream.close(0)));
    await servers.close();
  }
}
