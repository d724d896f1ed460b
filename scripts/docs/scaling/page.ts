// docs/scaling.md, from the results that `npm run bench -- scaling --publish` left, and the model and the
// simulation over them.
import {
  type RelayedDeployments,
  readPublished,
  type ScalingResults,
} from '../../../bench/published.ts';
import { type DeploymentResult, ONE_PROCESS } from '../../../bench/scaling/measure-deployments.ts';
import {
  type BatchCost,
  capacityOf,
  costOf,
  costOfBusiestNode,
  fitGateway,
  fitRedis,
  PLANNED_SHARE,
} from '../../../bench/scaling/model.ts';
import { simulate } from '../../../bench/scaling/simulate.ts';
import { renderMachine } from '../benchmarks/calls.ts';
import { renderTable } from '../table.ts';
import { show, showCount, showPercent } from './numbers.ts';
import { renderWays } from './ways.ts';

export function renderScalingPage(): string {
  const { machine, apart, shared, redis, hotWindows, relayed, ways } =
    readPublished().scaling ?? {};
  return machine === undefined ||
    apart === undefined ||
    shared === undefined ||
    redis === undefined ||
    hotWindows === undefined
    ? '# Scaling\n\nNothing was published yet.\n'
    : renderResults({
        machine,
        apart,
        shared,
        redis,
        hotWindows,
        ...(relayed && { relayed }),
        ...(ways && { ways }),
      });
}

/** The cost of a call according to the figures. */
interface Costs {
  readonly gateway: BatchCost;
  readonly redis: BatchCost;
  readonly stateless: BatchCost;
  readonly address: BatchCost;
  readonly session: BatchCost;
  readonly global: BatchCost;
}

/** Calls in a script of a process that is busy. */
const BUSY_BATCH = 8;
/** As in bench/scaling/simulate.ts: between machines of one network. */
const NETWORK_MICROSECONDS = 100;
const MAX_SCRIPTS = 4;

function renderResults(results: ScalingResults): string {
  const { redis, apart, shared, machine, relayed, ways } = results;
  const costs: Costs = {
    gateway: fitGateway(apart),
    redis: fitRedis(redis, 'session'),
    stateless: fitRedis(redis, 'stateless'),
    address: fitRedis(redis, 'address'),
    session: fitRedis(redis, 'session only'),
    global: fitRedis(redis, 'global'),
  };
  const perProcess = capacityOf(costOf(costs.gateway, BUSY_BATCH));
  const perRedis = capacityOf(costOf(costs.redis, BUSY_BATCH));
  return `# Scaling

How many calls does one process serve, what do more processes add, and when is Redis full? Measured on one machine, and
extrapolated with a model and a simulation.

- **One process** serves about ${showCount(perProcess)} calls per second at ${showPercent(PLANNED_SHARE)} of a core like the one measured. Each further process
  ([\`WORKERS\`](operations/store.md#several-processes-on-one-machine) or replica) adds the same.
- **One Redis** handles about ${showCount(perRedis)} calls per second at ${showPercent(PLANNED_SHARE)} of its core: enough for ${Math.floor(perRedis / perProcess)} such processes. It
  uses only one core, so give it a fast one.
- **Is Redis full?** CPU: run \`redis-cli INFO cpu\` twice, 10 s apart. The increase of \`used_cpu_user\` plus \`used_cpu_sys\`, divided by
  10, is the share of its core in use. Memory: compare \`used_memory_human\` with \`maxmemory_human\` in \`redis-cli INFO memory\`. When Redis is out of memory,
  [new sessions and logins fail](operations/outages.md#when-something-is-down) until you raise \`maxmemory\`.
- **When its CPU is full**, two settings [reduce the load on Redis](#querying-redis-less-often). **Redis Cluster** beats one Redis only with
  many primaries ([below](#when-one-redis-is-full)).
- **Redis memory**: rate limits keep each call for a minute in two windows, its address's and the one for all callers, at
  ${showBytes(results)} bytes in each. A thousand calls per second need ${Math.round((1000 * 60 * 2 * Number(showBytes(results))) / 1e6)} MB; calls counted from a leased share
  need almost none. Sessions and logins come on top.
- **By default**, all callers together may make 10,000 calls a minute, 167 a second. For more, raise
  [\`MCP_GLOBAL_RATE_LIMIT_MAX\`](operations/limits.md#rate-limits).

${renderMachine(machine)}
Gateway, Redis and load generator shared two cores. Each call is to \`service_ping\`; real tools cost more.

## What a call costs

One process with a core to itself; Redis and the load generator share the other. “Gateway” and “Redis” are microseconds of CPU per call.

${renderTable(
  ['Connections', 'Gateway', 'Redis', 'Calls per script', 'Calls/s', 'Core in use', 'p50', 'p99'],
  apart.map((row) => [
    String(row.connections),
    show(row.gateway),
    show(row.redis),
    show(row.batch),
    showCount(row.requestsPerSecond),
    showPercent(computeShare(row)),
    `${show(row.p50Ms)} ms`,
    `${show(row.p99Ms)} ms`,
  ]),
)}
${renderDisturbance(apart)}One Lua script in Redis, in one round trip, checks all calls that arrive in the same iteration of the event loop. The busier a process
is, the more calls share a script, and the less each costs. A call that arrives alone does not wait for others.

The Redis cost of one call, with a thousand users who each have an address and a session, by the number of calls per script:

${renderTable(
  ['Era', 'Calls per script', 'CPU µs', 'Commands', 'Bytes in', 'Bytes out'],
  redis
    .filter(({ part }) => part === 'session' || part === 'stateless')
    .map((row) => [
      row.part,
      show(row.batch),
      show(row.cpuMicroseconds),
      show(row.operations),
      show(row.bytesIn),
      show(row.bytesOut),
    ]),
)}
The commands clear, count and write the windows of the address and of all callers, and read and extend the session. Bandwidth is
no limit on a 1 Gbit/s network: ${showCount(perRedis)} calls per second are ${show((perRedis * 8 * 200) / 1e6)} Mbit/s each way.

## One process and two

32 connections, with everything sharing both cores, so two processes cannot be twice as fast: Redis and the load generator
need their part. Compare the cost of a call: “Gateway”, “Redis” and “Load” (the load generator) are microseconds of CPU per call.

${renderTable(
  ['Deployment', 'Gateway', 'Redis', 'Load', 'Calls per script', 'Calls/s', 'At most', 'p99'],
  shared.map((row) => [
    row.name,
    show(row.gateway),
    show(row.redis),
    show(row.load),
    show(row.batch),
    showCount(row.requestsPerSecond),
    showCount(computeMost(row)),
    `${show(row.p99Ms)} ms`,
  ]),
)}
With two processes, each event loop gets half as many calls per iteration, so fewer share a script. “At most” is the rate that these costs allow if nothing else
runs on the two cores: one process has one of them, two have whatever Redis and the load generator leave.

${relayed === undefined ? '' : renderRelayed(relayed)}## The model

CPU per call in microseconds, when *b* calls share an iteration of the event loop and a script:

${renderTable(
  ['Part', 'Cost', `b = 1`, `b = ${BUSY_BATCH}`, 'b = 64'],
  [
    renderCost('Gateway', costs.gateway),
    renderCost('Redis, session era', costs.redis),
    renderCost('Redis, stateless era', costs.stateless),
  ],
)}
With *n* processes, gateway cost *G*, Redis cost *R*, and a share *u* of each core in use:

\`\`\`
calls per second = u × min(n / G, 1 / R)
\`\`\`

So one Redis is enough for *G* / *R* = ${show(costOf(costs.gateway, BUSY_BATCH) / costOf(costs.redis, BUSY_BATCH))} busy processes. Each call takes one Redis round trip.

## The simulation

How many calls share a script depends on the load, which the model does not cover. A simulation
(\`bench/scaling/simulate.ts\`) does: each process takes the calls that have arrived, checks them, sends one script (at most ${MAX_SCRIPTS} are in flight), and
finishes the calls that Redis has answered. Redis runs one script at a time, and a message takes ${NETWORK_MICROSECONDS} µs. Each process has 32 connections, whose
clients call again at once: full load.

${renderTable(
  ['Processes', 'Calls/s', 'Redis in use', 'Processes in use', 'Calls per script', 'p50', 'p99'],
  [1, 2, 4, 6, 8, 12, 16, 32].map((processes) => {
    const run = simulate({ ...toSimulation(costs), processes, connections: 32 });
    return [
      String(processes),
      showCount(run.requestsPerSecond),
      showPercent(run.redisShare),
      showPercent(run.gatewayShare),
      show(run.batch),
      `${show(run.p50Ms)} ms`,
      `${show(run.p99Ms)} ms`,
    ];
  }),
)}
More processes than one Redis can feed gain nothing, but do no harm: because of the limit of ${MAX_SCRIPTS} scripts, calls share them when Redis falls
behind. Without it, 32 processes would reach ${showCount(simulate({ ...toSimulation(costs), processes: 32, connections: 32, maxScripts: 1000 }).requestsPerSecond)} calls per second.

The simulation compared with the measurements of one process:

${renderTable(
  ['Connections', 'Measured, calls/s', 'Simulated', 'Measured, calls per script', 'Simulated'],
  apart.map((row) => {
    const run = simulate({
      ...toSimulation(costs),
      networkMicroseconds: LOOPBACK_MICROSECONDS,
      processes: 1,
      connections: row.connections,
    });
    return [
      String(row.connections),
      showCount(row.requestsPerSecond),
      showCount(run.requestsPerSecond),
      show(row.batch),
      show(run.batch),
    ];
  }),
)}
${renderWays(ways, costs, {
  networkMicroseconds: NETWORK_MICROSECONDS,
  maxScripts: MAX_SCRIPTS,
  batch: BUSY_BATCH,
})}## When one Redis is full

Before you build a cluster, [reduce the load on Redis](#querying-redis-less-often), give it a faster core, or run a separate gateway, with its own Redis, for each
group of users. Such gateways share no sessions, logins or rate limits.

In a Redis Cluster, the keys for the address, the session and all callers are on different nodes. So a call takes three scripts in
sequence, and only the script for the window of all callers is shared by many calls. The node with that window is the busiest:

${renderTable(
  ['', 'CPU µs per call on the busiest node', `Calls/s at ${showPercent(PLANNED_SHARE)}`],
  [
    [
      'one Redis',
      show(costOf(costs.redis, BUSY_BATCH)),
      showCount(capacityOf(costOf(costs.redis, BUSY_BATCH))),
    ],
    ...[3, 6, 12, 24].map((primaries) => {
      const cost = costOfBusiestNode(costs, primaries, BUSY_BATCH);
      return [`${primaries} primaries`, show(cost), showCount(capacityOf(cost))];
    }),
  ],
)}
These figures are computed from scripts measured individually, not from a cluster under load. Other reasons for a cluster are
more memory than one machine has, and a failover that does not affect all users.

To change to a cluster, stop all processes, which would not share sessions across two stores; set \`STORE_READS=direct\` (the gateway does not start with \`tracked\`) and
\`REDIS_URL=rediss://…?cluster=true\`; and start them. The gateway moves no data:
an empty cluster has no sessions, logins or registrations, so users connect again. To go back, restore the old \`REDIS_URL\`: unexpired data there is still valid.

${renderHotWindow(results, costs)}
## Repeat it

\`\`\`sh
npm run build
npm run bench -- scaling               # about 5 minutes; nothing else should run
npm run bench -- scaling --publish     # writes the results into this page
\`\`\`
`;
}

function renderRelayed({ machine, deployments }: RelayedDeployments): string {
  const [one, two] = deployments;
  if (one === undefined || two === undefined) return '';
  return `### Calls that are passed on

The same, with 32 connections per process, and calls to a tool of a server behind the gateway that returns 1 KB. “Load” includes that server.

${renderMachine(machine)}

${renderTable(
  ['Deployment', 'Gateway', 'Redis', 'Load', 'Calls/s here', 'With a core for each process', 'p99'],
  deployments.map((row) => [
    row.name,
    show(row.gateway),
    show(row.redis),
    show(row.load),
    showCount(row.requestsPerSecond),
    showCount(computeFree(row)),
    `${show(row.p99Ms)} ms`,
  ]),
)}
“With a core for each process” is the rate that the gateway's CPU per call allows if everything else runs elsewhere: two processes pass on
${show(computeFree(two) / computeFree(one))} times as many calls as one.

`;
}

const countProcesses = ({ name }: DeploymentResult): number => (name === ONE_PROCESS ? 1 : 2);

const computeFree = (row: DeploymentResult): number => (countProcesses(row) * 1e6) / row.gateway;

/** Share of the gateway's core. */
const computeShare = ({ requestsPerSecond, gateway }: DeploymentResult): number =>
  (requestsPerSecond * gateway) / 1e6;

/** With this many connections a process always has something to do. */
const BUSY_CONNECTIONS = 32;

function renderDisturbance(apart: readonly DeploymentResult[]): string {
  const busy = apart.filter(({ connections }) => connections >= BUSY_CONNECTIONS);
  const least = Math.min(...busy.map(computeShare));
  if (least > 0.9) return '';
  return `With ${BUSY_CONNECTIONS} connections or more the process always has work. Where it used less than its core, other work ran on it, and
calls per second and latencies are worse than on a quiet machine. The CPU per call, from which the rest is computed, changes less.

`;
}

function computeMost(row: DeploymentResult): number {
  const onBothCores = 2e6 / (row.gateway + row.redis + row.load);
  return countProcesses(row) === 1 ? Math.min(computeFree(row), onBothCores) : onBothCores;
}

const LOOPBACK_MICROSECONDS = 20;

const toSimulation = ({ gateway, redis }: Costs) => ({
  gateway,
  redis,
  networkMicroseconds: NETWORK_MICROSECONDS,
  maxScripts: MAX_SCRIPTS,
});

function renderHotWindow({ hotWindows }: ScalingResults, costs: Costs): string {
  const shared = costOf(costs.global, BUSY_BATCH);
  const all = costOf(costs.redis, BUSY_BATCH);
  return `## The window of all callers

\`MCP_GLOBAL_RATE_LIMIT_MAX\` counts every call in one key (\`${'ratelimit:mcp:global'}\`), a sorted set of the last minute. Counting at full speed, with
nothing else to do:

${renderTable(
  ['Limit', 'Calls/s', 'CPU µs per call', 'Entries', 'Bytes per entry', 'Removing half of them'],
  hotWindows.map((row) => [
    showCount(row.max),
    showCount(row.requestsPerSecond),
    show(row.cpuMicroseconds),
    showCount(row.entries),
    show(row.bytesPerEntry),
    `${Math.round(row.stallMs)} ms`,
  ]),
)}
- **Splitting it does not pay.** It is ${show(shared)} of the ${show(all)} µs that a call costs Redis. Eight windows with an eighth of the limit each
  would cost the same on one Redis. Because calls spread unevenly, a limit of 1,000,000 would also start refusing at about 99.6 %. On a
  cluster, splitting would begin to pay with a dozen primaries, above ${showCount(capacityOf(costOfBusiestNode(costs, 12, BUSY_BATCH)))} calls per second.
- **Rounding it does not pay either.** We tried counting in tenths of a second instead of single calls. It saves half of the windows' memory, but only 3 to
  10 % of Redis's CPU, because the window of the address costs more. So there is one exact form, and no setting.
- **Redis does not stall after a pause.** When all entries of a busy minute expire at once, removing them in one step would keep
  Redis busy for the time in the last column, longer than the gateway waits. So a script removes at most 5,000, and does not count the rest.
- If no one calls for a whole minute, Redis itself removes the key. Set \`lazyfree-lazy-expire yes\` so that it does so in the background.
`;
}

const renderCost = (name: string, cost: BatchCost): readonly string[] => [
  name,
  `${show(cost.each)} + ${show(cost.fixed)} / b`,
  ...[1, BUSY_BATCH, 64].map((batch) => show(costOf(cost, batch))),
];

const showBytes = ({ hotWindows }: ScalingResults): string =>
  show(Math.max(...hotWindows.map(({ bytesPerEntry }) => bytesPerEntry)));
