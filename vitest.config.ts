import { statfsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/tools/longest-first.ts';

const REDIS_SETUP = 'test/support/tools/redis-setup.ts';
const BUILD_SETUP = 'test/support/tools/build-setup.ts';

/** CI runs all tests (LONG_TESTS=true); `npm test` leaves to it what LEFT_TO_CI names. */
const isEverything = process.env.LONG_TESTS === 'true';

const BROWSER = ['test/clients/browser*.test.ts'];

/** What is shipped around the code. */
const PACKAGING = [
  'test/process/{compose,helm-chart,image,monitoring,package,release,starter,systemd}.test.ts',
];

/**
 * What the program says and does, where neither the process nor Node.js is the subject: CI runs it on one Node.js. What
 * Node.js itself decides about it (`.env`, TypeScript, certificates, names that cannot be resolved, terminals, signals) is
 * in a file of `process`.
 */
const PROGRAM = [
  'test/process/doctor-{gateway,github,logins,own-tokens,providers,settings,store}.test.ts',
  'test/process/{clients-command,config-command,connect,completion,export,init,init-server-json}.test.ts',
  'test/process/{lock,lock-approve,lock-served,rules-command,views-commands}.test.ts',
  'test/process/{conformance,demo,example-gateway,example-servers,lab,walk}.test.ts',
  'test/process/{config-file-under-load,log-secrets,program-users,redis-sentinel}.test.ts',
  'test/process/{site,start-errors,upstream-restarts}.test.ts',
];

/** Everything that can break, broken under load: minutes, of which CI spends one round. */
const FAULTS = ['test/process/chaos.test.ts'];

const LEFT_TO_CI = [
  ...PACKAGING,
  ...FAULTS,
  // The scripts of this checkout (`npm run demo`), which compile themselves at each start.
  'test/process/{conformance,demo,lab,walk}.test.ts',
  // The site and the apps in it. In Chromium, `npm test` goes through logins and consent.
  'test/clients/browser-{admin,apps,apps-official,approvals,axe,connections,front-page,front-tools,tabs}.test.ts',
  'test/clients/browser-{playground*,site,site-widths}.test.ts',
  // Tools of others, which run as processes for a minute.
  'test/clients/{conformance-server,conformance-skills,conformance-upstream,inspector}.test.ts',
];

/** These load the machine on purpose, or run a Redis Cluster, whose nodes take each other for dead on a busy machine. */
const BUSY = {
  spec: ['test/spec/4.4-mcp/isolation.test.ts', 'test/spec/18-upstreams/relay-isolation.test.ts'],
  contract: ['test/contract/redis-{cluster,faults}.test.ts'],
  process: ['test/process/{overload,starvation}.test.ts'],
} as const;

/**
 * For tests that hardly start a process. Embedded stores wait for the disk at each write: folders are in memory, where
 * Linux has 1 GiB of it to spare. What is polled is a value of this process.
 */
const INSIDE = {
  env: hasRoom('/dev/shm', 2 ** 30) ? { TMPDIR: '/dev/shm' } : {},
  expect: { poll: { timeout: 20_000, interval: 10 } },
};

const SPEC = ['test/spec/**/*.test.ts', 'test/architecture.test.ts'];
const CONTRACT = ['test/contract/*.test.ts'];
const CLIENTS = ['test/clients/*.test.ts'];
const PROCESS = ['test/process/*.test.ts'];

export default defineConfig({
  // The catalogue and the examples import the package by its name, and get its source (tsconfig.json, paths).
  resolve: {
    alias: [
      { find: /^postern$/, replacement: sourceOf('index.ts') },
      { find: /^postern\/define$/, replacement: sourceOf('define.ts') },
      { find: /^postern\/testing$/, replacement: sourceOf('testing.ts') },
    ],
  },
  test: {
    // CONTRIBUTING.md says which of them CI runs on which Node.js.
    projects: [
      project('spec', SPEC, together(0), { except: BUSY.spec, isInside: true }),
      project('contract', CONTRACT, together(0), { except: BUSY.contract, isInside: true }),
      project('clients', CLIENTS, together(0), { except: BROWSER }),
      project('process', PROCESS, together(0), {
        except: [...PROGRAM, ...PACKAGING, ...FAULTS, ...BUSY.process],
        isBuilt: true,
      }),
      project('program', PROGRAM, together(0), { isBuilt: true }),
      project('browser', BROWSER, together(0), { isBuilt: true }),
      project('packaging', PACKAGING, together(0), { isBuilt: true }),
      // Faults of Redis are mostly waited for.
      project('spec alone', BUSY.spec, inPairs(1), { isInside: true }),
      project('contract alone', BUSY.contract, inPairs(1), { isInside: true }),
      project('process alone', BUSY.process, alone(2), { isBuilt: true }),
      project('faults', FAULTS, alone(3), { isBuilt: true }),
    ],
    // A worker loads the source once, and keeps what is dear to make: keys, a browser, tools.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    // The line that names a failure shows the values, not how many there were.
    chaiConfig: { truncateThreshold: 0 },
    reporters: ['default', './test/support/tools/summary-reporter.ts'],
    // A browser on a busy machine takes its time; nothing here asserts by the clock.
    testTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    hookTimeout: 60_000,
  },
});

interface ProjectOptions {
  readonly except?: readonly string[];
  /** Whether it needs `dist`: the program as users run it, or the pages. */
  readonly isBuilt?: boolean;
  /** Whether it hardly starts a process: with `INSIDE`. */
  readonly isInside?: boolean;
}

function project(
  name: string,
  include: readonly string[],
  schedule: { maxWorkers: number; sequence: { groupOrder: number } },
  { except = [], isBuilt = false, isInside = false }: ProjectOptions = {},
) {
  const globalSetup = isBuilt ? [REDIS_SETUP, BUILD_SETUP] : [REDIS_SETUP];
  return {
    extends: true as const,
    test: {
      name,
      include: [...include],
      exclude: [...except, ...(isEverything ? [] : LEFT_TO_CI)],
      globalSetup,
      ...(isInside && INSIDE),
      ...schedule,
    },
  };
}

/** What shares a number runs together; the numbers follow one another. */
function together(groupOrder: number) {
  return {
    // Many tests wait for other processes: two workers more than there are cores.
    maxWorkers: availableParallelism() + 2,
    sequence: { groupOrder },
  };
}

function inPairs(groupOrder: number) {
  return { ...together(groupOrder), maxWorkers: 2 };
}

function alone(groupOrder: number) {
  return { ...together(groupOrder), maxWorkers: 1 };
}

function hasRoom(folder: string, bytes: number): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize >= bytes;
  } catch {
    return false;
  }
}

function sourceOf(name: string): string {
  return fileURLToPath(new URL(`src/${name}`, import.meta.url));
}
