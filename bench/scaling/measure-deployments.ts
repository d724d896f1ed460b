// The service as one process and as two: what a call costs each part, and how many there are in a second.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { startHaproxy } from '../../scripts/chaos/servers/haproxy.ts';
import { checkAnswers } from '../check-answers.ts';
import { runPostern } from '../contestants.ts';
import { nameInFile, startUpstream } from '../relay/upstreams.ts';
import { SMALL_CALL, TOOLS } from '../relay/ways.ts';
import { computeMedian } from '../results.ts';
import type { Plan } from '../rounds.ts';
import { LOAD_CORE, type ServerProcess } from '../server-process.ts';
import { openTestbed, type Testbed } from '../testbed.ts';
import { runWrk } from '../wrk.ts';
import { createRedisMeter, type RedisMeter } from './redis-meter.ts';

/** Of each call, in microseconds of CPU, where nothing else is said. */
export interface DeploymentFigures {
  readonly requestsPerSecond: number;
  readonly gateway: number;
  readonly redis: number;
  /** The load generator; with it the load balancer and the server behind, where there are some. */
  readonly load: number;
  /** Calls in each script. */
  readonly batch: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface DeploymentResult extends DeploymentFigures {
  readonly name: string;
  readonly connections: number;
}

/** `apart`: the gateway has a core, everything else the other. `shared`: all run on both. */
type Placement = 'apart' | 'shared';

/** Of the page. `relayed`: as `shared`, and calls go on to a server behind. */
export type DeploymentPart = Placement | 'relayed';

export interface Deployment {
  readonly name: string;
  readonly placement: Placement;
  readonly connections: number;
  /** Each with an address and a session; one of both for all calls where it is missing. */
  readonly users?: number;
  open(start: StartReplica): Promise<Opened>;
}

export const ONE_PROCESS = 'one process';

/** A round also says what Redis did for a call. */
export interface DeploymentRound extends DeploymentFigures {
  readonly scripts: number;
  readonly commands: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Suspended but for its rounds. */
export interface OpenDeployment {
  run(length: RoundLength, connections?: number): Promise<DeploymentRound>;
  close(): Promise<void>;
}

type RoundLength = Pick<Plan, 'leadInSeconds' | 'seconds'>;

type StartReplica = (settings?: Readonly<Record<string, string>>) => Promise<ServerProcess>;

interface Opened {
  readonly servers: readonly ServerProcess[];
  /** Where clients go, each with its share of the connections. */
  readonly urls: readonly string[];
  readonly close?: () => Promise<void>;
}

export const openOne = async (start: StartReplica, settings = {}): Promise<Opened> => {
  const server = await start(settings);
  return { servers: [server], urls: [server.url] };
};

async function openTwo(start: StartReplica): Promise<Opened> {
  const servers = [await start(), await start()];
  return { servers, urls: servers.map(({ url }) => url) };
}

async function openBehindHaproxy(start: StartReplica): Promise<Opened> {
  const { servers, urls } = await openTwo(start);
  const balancer = await startHaproxy(
    urls.map((url) => Number(new URL(url).port)),
    1000,
  );
  return { servers, urls: [`${balancer.url}/mcp`], close: balancer.close };
}

const openWorkers = (start: StartReplica): Promise<Opened> => openOne(start, { WORKERS: '2' });

const onBothCores = (name: string, open: Deployment['open'], connections = 32): Deployment => ({
  name,
  placement: 'shared',
  connections,
  open,
});

const WORKERS = '`WORKERS=2`';

const DEPLOYMENTS: Readonly<Record<DeploymentPart, readonly Deployment[]>> = {
  apart: [1, 8, 32, 128].map((connections) => ({
    name: ONE_PROCESS,
    placement: 'apart',
    connections,
    open: openOne,
  })),
  shared: [
    onBothCores(ONE_PROCESS, openOne),
    onBothCores(WORKERS, openWorkers),
    onBothCores('two replicas, clients in turn', openTwo),
    onBothCores('two replicas behind HAProxy', openBehindHaproxy),
  ],
  // As many for each process: with fewer, less would share an iteration of the event loop.
  relayed: [onBothCores(ONE_PROCESS, openOne), onBothCores(WORKERS, openWorkers, 64)],
};

const BOTH_CORES = '0,1';
/** Two processes share the calls, and V8 optimises each of them by itself. */
const WARM_UP_SECONDS = 25;
const MAX_REPEATS = 4;

export async function measureDeployments(
  part: DeploymentPart,
  plan: Plan,
): Promise<readonly DeploymentResult[]> {
  const deployments = DEPLOYMENTS[part];
  const testbed = await openTestbed();
  const client = new Redis(testbed.redisUrl);
  const runners = [];
  let behind: ServerProcess | undefined;
  try {
    const meter = createRedisMeter(client);
    if (part !== 'apart') await allowBothCores(client);
    if (part === 'relayed') behind = await startUpstream('session', TOOLS, BOTH_CORES);
    for (const deployment of deployments) {
      runners.push(await openDeployment(testbed, deployment, meter, behind));
    }
    const rounds = runners.map((): DeploymentRound[] => []);
    for (let round = 0; round < plan.rounds; round++) {
      for (const [at, { run }] of runners.entries()) rounds[at]?.push(await run(plan));
    }
    return deployments.map(({ name, connections }, at) => ({
      name,
      connections,
      ...computeMedians(rounds[at] ?? []),
    }));
  } finally {
    for (const { close } of runners) await close();
    client.disconnect();
    await behind?.stop();
    await testbed.close();
    allowOnlyLoadCore();
  }
}

export async function allowBothCores(client: Redis): Promise<void> {
  const redisPid = /^process_id:(\d+)/m.exec(await client.info('server'))?.[1] ?? '';
  allow(redisPid, BOTH_CORES);
  allow(process.pid, BOTH_CORES);
}

export const allowOnlyLoadCore = (): void => allow(process.pid, LOAD_CORE);

const allow = (pid: number | string, cores: string): void =>
  void execFileSync('taskset', ['-acp', cores, String(pid)], { stdio: 'ignore' });

let database = 500;

export async function openDeployment(
  testbed: Testbed,
  deployment: Deployment,
  meter: RedisMeter,
  behind?: ServerProcess,
): Promise<OpenDeployment> {
  database += 1;
  const shared = { REDIS_URL: `${testbed.redisUrl}/${database}`, ALLOWED_HOSTS: '127.0.0.1' };
  const cores = deployment.placement === 'shared' ? { cores: BOTH_CORES } : {};
  const file =
    behind &&
    (await nameInFile(testbed.folder, 'relayed', { bare: { url: behind.url, prefix: '' } }));
  const { servers, urls, close } = await deployment.open((settings = {}) =>
    testbed.start(runPostern('redis', { ...shared, ...settings }, file), cores),
  );
  const [first] = servers;
  if (first === undefined) throw new Error('There is no server');
  // Any replica serves a session.
  const call =
    deployment.users === undefined
      ? await testbed.createCall(first, 'session', behind && SMALL_CALL)
      : await testbed.createCallOfMany(first, deployment.users);
  const loads = await Promise.all(
    urls.map(async (url) => {
      const own = { ...call, url };
      const folder = mkdtempSync(join(testbed.folder, 'load-'));
      return { folder, call: own, expected: await checkAnswers(own) };
    }),
  );

  const sendLoad = (connections: number, seconds: number) =>
    Promise.all(
      loads.map(({ folder, ...load }) =>
        runWrk(folder, { ...load, connections: connections / urls.length, seconds }),
      ),
    );

  async function run(
    length: RoundLength,
    connections = deployment.connections,
  ): Promise<DeploymentRound> {
    for (const server of servers) server.resume();
    try {
      await sendLoad(connections, length.leadInSeconds);
      return await measure(length.seconds, connections);
    } finally {
      for (const server of servers) server.suspend();
    }
  }

  /** Where other work on the machine makes the service refuse calls, a round says nothing, and is repeated. */
  async function measure(
    seconds: number,
    connections: number,
    repeats = MAX_REPEATS,
  ): Promise<DeploymentRound> {
    const readGateway = () => servers.reduce((sum, server) => sum + server.readCpuSeconds(), 0);
    const readLoad = () => readEndedChildrenSeconds() + (behind?.readCpuSeconds() ?? 0);
    const [gatewayBefore, loadBefore, redisBefore] = [
      readGateway(),
      readLoad(),
      await meter.read(),
    ];
    const results = await sendLoad(connections, seconds);
    const requests = results.reduce((sum, result) => sum + result.requests, 0);
    const failures = results.reduce((sum, result) => sum + result.failures, 0);
    if (failures > 0 && repeats > 0) return measure(seconds, connections, repeats - 1);
    if (failures > 0) {
      const logs = servers.map((server) => server.readOutput()).join('');
      throw new Error(`${deployment.name}: ${failures} wrong answers\n${logs}`);
    }
    const redis = meter.computeUse(redisBefore, await meter.read(), requests);
    return {
      requestsPerSecond: results.reduce((sum, result) => sum + result.requestsPerSecond, 0),
      gateway: ((readGateway() - gatewayBefore) / requests) * 1e6,
      redis: redis.cpuMicroseconds,
      load: ((readLoad() - loadBefore) / requests) * 1e6,
      batch: 1 / redis.scripts,
      p50Ms: Math.max(...results.map(({ p50Ms }) => p50Ms)),
      p99Ms: Math.max(...results.map(({ p99Ms }) => p99Ms)),
      scripts: redis.scripts,
      commands: redis.operations,
      bytesIn: redis.bytesIn,
      bytesOut: redis.bytesOut,
    };
  }

  await sendLoad(deployment.connections, WARM_UP_SECONDS);
  for (const server of servers) server.suspend();
  return {
    run,
    async close() {
      for (const server of servers) server.resume();
      await close?.();
    },
  };
}

/** CPU of wrk: of the children of this process that have ended. */
function readEndedChildrenSeconds(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[13]) + Number(fields[14])) / 100;
}

const FIGURES = [
  'requestsPerSecond',
  'gateway',
  'redis',
  'load',
  'batch',
  'p50Ms',
  'p99Ms',
  'scripts',
  'commands',
  'bytesIn',
  'bytesOut',
] as const satisfies readonly (keyof DeploymentRound)[];

export function computeMedians(rounds: readonly DeploymentRound[]): DeploymentRound {
  const medians = FIGURES.map((figure) => [
    figure,
    computeMedian(rounds.map((round) => round[figure])),
  ]);
  return Object.fromEntries(medians);
}
