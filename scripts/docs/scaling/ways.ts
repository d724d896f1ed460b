// The part of docs/scaling.md about querying Redis less often, from its own measurements.
import type { WaysResults } from '../../../bench/published.ts';
import type { CallersRow } from '../../../bench/scaling/measure-callers.ts';
import { ONE_PROCESS } from '../../../bench/scaling/measure-deployments.ts';
import type { ModeResult } from '../../../bench/scaling/measure-modes.ts';
import {
  type BatchCost,
  capacityOf,
  costOf,
  PLANNED_SHARE,
  scaleCost,
} from '../../../bench/scaling/model.ts';
import { simulate } from '../../../bench/scaling/simulate.ts';
import { DEFAULT_MODE, STORE_MODES, type StoreMode } from '../../../bench/scaling/store-modes.ts';
import { renderMachine } from '../benchmarks/calls.ts';
import { renderTable } from '../table.ts';
import { show, showCount, showPercent } from './numbers.ts';

/** Costs of counting by log and reading directly, in a run on a quiet machine. */
interface Costs {
  readonly gateway: BatchCost;
  readonly redis: BatchCost;
}

/** The cost of a call in one of the modes. */
export interface Way extends Costs {
  readonly mode: StoreMode;
  readonly askedShare: number;
}

interface Surroundings {
  readonly networkMicroseconds: number;
  readonly maxScripts: number;
  /** Calls in a script of a process that is busy. */
  readonly batch: number;
}

/** Users in the table by callers: as many per process as the model assumes. */
const MODEL_USERS = 250;
const MODEL_CONNECTIONS = 32;
const PROCESSES = [1, 2, 4, 8, 16, 25, 32];

export function renderWays(
  ways: WaysResults | undefined,
  costs: Costs,
  surroundings: Surroundings,
): string {
  return `## Querying Redis less often

Redis is full before the processes are, because each call writes to two windows and extends its session. Two settings reduce its load:

- [\`RATE_LIMIT_COUNTING=leased\`](reference/limits.md#leased-counting): a process leases a share of a window, and counts locally until the share is used up or
  5 s old. A session is extended only once every 5 % of its lifetime. The default, \`log\`, counts each call in Redis.
- [\`STORE_READS=tracked\`](operations/store.md#reads-that-are-remembered): a process caches sessions and logins until Redis reports that they changed. The
  default, \`direct\`, reads them for each call.

${ADVICE}${
  ways === undefined || ways.modes.length === 0 || ways.callers.length === 0
    ? ''
    : renderMeasured(ways, costs, surroundings)
}`;
}

function renderMeasured(
  ways: WaysResults,
  costs: Costs,
  { batch, ...surroundings }: Surroundings,
): string {
  const { machine, modes, callers } = ways;
  const all = STORE_MODES.map((mode) => deriveWay(mode, ways, costs, batch));
  return `### What it saves

${renderMachine(machine)}

Each round measured each mode once, after two uncounted seconds of the same load; processes waiting for their turn are suspended.
**× log** is the median of the ratios within a round, which is more reliable than the microseconds when other work runs. Compare the rows with each other, not
with the tables above, which come from another run. In the first rows all calls come from one address and session. No limit was near: all were set to
1,000,000,000.

${renderTable(
  [
    'Deployment',
    'Connections',
    'Mode',
    'Gateway µs',
    '× log',
    'Redis µs',
    '× log',
    'Scripts',
    'Commands',
    'Bytes in',
    'Bytes out',
    'Calls/s',
  ],
  modes.map(renderMode),
)}
${isFarSlower(ways, costs, batch) ? `${BUSY_MACHINE}\n` : ''}Scripts, commands and bytes are per call. A process that tracks reads also sends Redis 50 small commands a second while it receives calls, however
many: the fewer the calls, the more of these commands per call.

The saving depends on how often a caller returns. Here one process serves ${showCount(callers[0]?.callsPerSecond ?? 0)} calls per second from this many users in turn, each with
an address and a session:

${renderTable(
  [
    'Users',
    'Calls per user in 5 s',
    'Mode',
    'Redis µs',
    '× log',
    'Scripts',
    'Commands',
    'Bytes in',
    'Bytes out',
  ],
  callers.map((row) => renderCallers(row, callers)),
)}
### How many processes one Redis serves

From the [model](#the-model), with each mode’s cost relative to \`log\`, and the users of the first rows of the last table (each calls 8 times a second):

${renderTable(
  [
    'Mode',
    'Gateway µs',
    'Redis µs',
    'Processes on one Redis',
    `Calls/s at ${showPercent(PLANNED_SHARE)} of Redis`,
  ],
  all.map((way) => {
    const [gateway, redis] = [
      costOf(way.gateway, batch),
      way.askedShare * costOf(way.redis, batch),
    ];
    return [
      way.mode.label,
      show(gateway),
      show(redis),
      String(Math.floor(gateway / redis)),
      showCount(capacityOf(redis)),
    ];
  }),
)}
From the [simulation](#the-simulation), with ${MODEL_CONNECTIONS} connections per process: calls per second and the share of Redis's core in use.

${renderTable(
  ['Processes', ...STORE_MODES.map(({ label }) => label)],
  PROCESSES.map((processes) => [
    String(processes),
    ...all.map(({ gateway, redis, askedShare }) => {
      const run = simulate({
        ...surroundings,
        gateway,
        redis,
        askedShare,
        processes,
        connections: MODEL_CONNECTIONS,
      });
      return `${showCount(run.requestsPerSecond)}, ${showPercent(run.redisShare)}`;
    }),
  ]),
)}
`;
}

/** Rows of one process, by their way. */
const findRow = ({ modes }: WaysResults, name: StoreMode['name']): ModeResult | undefined =>
  modes.find(
    ({ mode, deployment, connections }) =>
      mode === name && deployment === ONE_PROCESS && connections === MODEL_CONNECTIONS,
  );

/** Above it, the microseconds of two runs are not of the same machine. */
const FAR_SLOWER = 2;

const isFarSlower = (ways: WaysResults, costs: Costs, batch: number): boolean =>
  (findRow(ways, DEFAULT_MODE)?.gateway ?? 0) > FAR_SLOWER * costOf(costs.gateway, batch);

const BUSY_MACHINE = `Other work used so much of the machine that all microseconds here are several times those of a quiet one, and calls per second far lower: compare
ratios, commands and bytes. A process that gets no CPU for 100 ms cannot trust its cache, and queries Redis again. With eight processes on two cores that other
work shares, this happens all the time: give processes that track reads their own cores.
`;

const ADVICE = `### When to switch

Keep the defaults as long as one Redis is enough: they are exact, and need nothing special from Redis. Switch when Redis uses more than about half of its
core, or when Redis is so far away that each round trip counts. Add one line at a time to the settings of all processes, then do a rolling restart:

\`\`\`sh
RATE_LIMIT_COUNTING=leased   # first: any Redis, a cluster too
STORE_READS=tracked          # then: one Redis or Sentinel, Redis 6 or later
\`\`\`

- **Before**: for \`leased\`, all processes need a version that has the setting. For \`tracked\`, the Redis user
  [must be allowed to use \`CLIENT TRACKING\`](operations/store.md#reads-that-are-remembered). On its own, \`tracked\` saves no round trip, because each call is still counted in Redis.
- **How to tell that it works**: Redis uses less of its core at the same load ([how to measure](#scaling)), and \`postern doctor\` shows a \`✓\`: “Redis reports changes”.
  \`redis_operations_total\` does not fall: it also counts operations that send Redis nothing.
- **To go back**, remove the line and do a rolling restart. Before you then downgrade to a version without \`leased\`, wait a little over one window (a minute for calls,
  an hour for registrations); otherwise a limit may admit too many requests for that long.
- **Where it helps**: with frequent callers. A caller that sends a process at least 4 calls in 5 s gets a share of at most 5 % of the limit: 5 calls, with the
  default of 100 calls a minute per address. With tens of thousands of users who each call occasionally, only the window of all callers is
  leased. If the load balancer sends each address or session to the same process, its calls add up there.

### What you give up

- **A limit may refuse early.** What another process has leased but not used counts as used. That is at most one share per process (5 % of the limit, less
  near it), for at most 5 s; for a killed process, for a window plus 5 s. While Redis answers, no limit is ever exceeded. The last 31
  requests of a window, and limits under 80, are counted one by one. \`X-RateLimit-Remaining\` may be 5 s old.
- **Other processes refuse deleted sessions and revoked logins within 200 ms** (with \`direct\`, at the next call). The
  process that ended one refuses it at once. Whenever a process cannot be certain to hear of changes, it queries Redis for each call.
- **A session may expire up to 5 % of \`MCP_SESSION_TTL_SECONDS\` early** after its last call, because it is extended only once that much of its time
  has passed. \`X-Session-Expires-At\` has the real expiry.
- **While Redis is down**, a process still counts against its share until it expires (5 s at most); then every request passes, as with \`log\`. Calls in sessions fail as with the defaults: a
  process knows a session for 100 ms without Redis.

[Leased counting](reference/limits.md#leased-counting) and [Tracked reads](reference/limits.md#tracked-reads) give the details.

`;

/** In proportion to what log cost in the same run: a busy machine makes all of them dearer. */
function deriveWay(mode: StoreMode, ways: WaysResults, costs: Costs, batch: number): Way {
  if (mode.name === DEFAULT_MODE) return { ...costs, mode, askedShare: 1 };
  const row = findRow(ways, mode.name);
  const callers = ways.callers.find((one) => one.mode === mode.name && one.users === MODEL_USERS);
  if (row === undefined || callers === undefined) throw new Error(`${mode.name} was not measured`);
  const gateway = scaleCost(costs.gateway, row.gatewayRatio);
  const ratio = computeRedisRatio(callers, ways.callers);
  if (mode.settings.STORE_READS === undefined) {
    return { mode, gateway, redis: scaleCost(costs.redis, ratio), askedShare: 1 };
  }
  // As many calls in a script as with log: those that come in the same moment.
  const log = findLog(callers, ways.callers);
  const askedShare = Math.min(1, callers.scripts / (log?.scripts ?? 1));
  const each = (ratio * costOf(costs.redis, batch)) / askedShare;
  return { mode, gateway, redis: { fixed: 0, each }, askedShare };
}

const findLog = ({ users }: CallersRow, all: readonly CallersRow[]) =>
  all.find((row) => row.mode === DEFAULT_MODE && row.users === users);

const computeRedisRatio = (row: CallersRow, all: readonly CallersRow[]): number =>
  row.cpuMicroseconds / (findLog(row, all)?.cpuMicroseconds ?? Number.NaN);

const labelOf = (name: StoreMode['name']) =>
  STORE_MODES.find((mode) => mode.name === name)?.label ?? name;

const renderMode = (row: ModeResult): readonly string[] => [
  row.deployment,
  String(row.connections),
  labelOf(row.mode),
  show(row.gateway),
  row.gatewayRatio.toFixed(2),
  show(row.redis),
  row.redisRatio.toFixed(2),
  show(row.scripts),
  show(row.commands),
  show(row.bytesIn),
  show(row.bytesOut),
  showCount(row.requestsPerSecond),
];

const SHARE_SECONDS = 5;

const renderCallers = (row: CallersRow, all: readonly CallersRow[]): readonly string[] => [
  row.users.toLocaleString('en-US'),
  show((row.callsPerSecond * SHARE_SECONDS) / row.users),
  labelOf(row.mode),
  show(row.cpuMicroseconds),
  computeRedisRatio(row, all).toFixed(2),
  show(row.scripts),
  show(row.operations),
  show(row.bytesIn),
  show(row.bytesOut),
];
