// npm run bench -- observe: what the audit log and traces cost, compared with the same service without them, in
// alternating rounds. The row "off, again" says how much the rounds differ by themselves.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Contestant, runPostern } from './contestants.ts';
import type { Options } from './options.ts';
import { computeFigures, computeRatio } from './results.ts';
import { prepareRunner, type Runner, runRounds } from './rounds.ts';
import { openTestbed } from './testbed.ts';

const OFF = 'off';

/** In place of OTEL_EXPORTER_OTLP_ENDPOINT: known once it listens. */
const COLLECTED = { OTEL_EXPORTER_OTLP_ENDPOINT: '' };
const AUDITED = { AUDIT_LOG: 'file:/dev/null' };

const SETTINGS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  [OFF]: {},
  'off, again': {},
  AUDIT_LOG: AUDITED,
  AUDIT_REQUIRED: { ...AUDITED, AUDIT_REQUIRED: 'true' },
  'traces, none recorded': { ...COLLECTED, OTEL_TRACES_SAMPLER: 'always_off' },
  'traces, one in ten': {
    ...COLLECTED,
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.1',
  },
  'traces, all': COLLECTED,
};

export async function measureObserve({ plan, only }: Options): Promise<void> {
  const testbed = await openTestbed();
  const collector = await startCollector();
  try {
    const runners: Runner[] = [];
    for (const [name, settings] of Object.entries(SETTINGS)) {
      if (only.length > 0 && name !== OFF && !only.some((one) => name.startsWith(one))) continue;
      const env = 'OTEL_EXPORTER_OTLP_ENDPOINT' in settings ? collector.env : {};
      runners.push(await prepareRunner(testbed, toContestant(name, { ...settings, ...env }), plan));
    }
    const series = await runRounds(testbed, runners, plan);
    for (const connections of plan.connections) {
      const rows = series
        .filter((row) => row.connections === connections)
        .map(computeFigures)
        .map(({ contestant, cpuMicroseconds, p50Ms, p99Ms, flaw }) => {
          const ratio = computeRatio(series, {
            ...{ of: contestant, by: OFF },
            ...{ measure: 'cpuMicroseconds' as const, connections },
          });
          const percent = ((ratio ?? Number.NaN) - 1) * 100;
          const row =
            flaw === undefined
              ? {
                  'CPU µs': round(cpuMicroseconds),
                  '%': round(percent),
                  'p50 ms': round(p50Ms),
                  'p99 ms': round(p99Ms),
                }
              : { void: flaw };
          return [contestant, row] as const;
        });
      console.log(`\n${connections} ${connections === 1 ? 'connection' : 'connections'}`);
      console.table(Object.fromEntries(rows));
    }
  } finally {
    await testbed.close();
    await collector.close();
  }
}

const round = (value: number): number => Number(value.toFixed(1));

const toContestant = (name: string, env: Readonly<Record<string, string>>): Contestant => ({
  name,
  label: name,
  era: 'stateless',
  command: runPostern('embedded', env),
  isQuick: true,
});

/** Takes everything and keeps nothing; it runs beside the load. */
async function startCollector() {
  const server = createServer((req, res) => {
    req.resume().on('end', () => res.end());
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  return {
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` },
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}
