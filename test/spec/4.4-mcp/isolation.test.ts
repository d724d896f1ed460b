// Eight users at once, all with the same ids: nobody ever gets what is another's.
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { createGateway } from '../../../src/gateway/gateway.ts';
import { createLog } from '../../../src/platform/log.ts';
import {
  BASE_URL,
  INITIALIZE_REQUEST,
  onFreePort,
  startGateway,
} from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type Issuer, startIssuer } from '../../support/oauth/issuer.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { chooseCount } from '../../support/tools/long-run.ts';
import { type Call, checkCall, secretCatalog, type User } from './isolation-calls.ts';
import { connectMany, connectPipelined, type Post } from './isolation-connections.ts';

const USERS = 8;
const CALLS = chooseCount(240, 4000);
const MIXED_CALLS = chooseCount(240, 1000);
const IN_FLIGHT_PER_USER = 12;
const HOST = new URL(BASE_URL).host;
const NO_LIMITS = { MCP_RATE_LIMIT_MAX: '1000000', MCP_GLOBAL_RATE_LIMIT_MAX: '1000000' };
const LIMIT_MS = 120_000;

interface Ports {
  readonly issuer: Issuer;
  /** Lines of the log, errors only. */
  readonly errors: readonly string[];
  readonly ports: readonly number[];
}

async function oneGateway(): Promise<Ports> {
  const { log, errors } = collectErrors();
  const options = { env: NO_LIMITS, deps: { catalog: secretCatalog, log } };
  const gateway = closeAfterTest(await startGateway(options));
  return { issuer: gateway.issuer, errors, ports: [await gateway.listen()] };
}

async function twoReplicas(): Promise<Ports> {
  const redis = closeAfterTest(await startRedis());
  const issuer = closeAfterTest(await startIssuer());
  const config = loadConfig({
    BASE_URL,
    HOST: '127.0.0.1',
    REDIS_URL: redis.url,
    OIDC_ISSUER: issuer.url,
    ...NO_LIMITS,
  });
  const { log, errors } = collectErrors();
  const open = () => createGateway(onFreePort(config), { log, catalog: secretCatalog });
  const replicas = await Promise.all([open(), open()]);
  replicas.forEach(closeAfterTest);
  return { issuer, errors, ports: await Promise.all(replicas.map(({ listen }) => listen())) };
}

function collectErrors() {
  const errors: string[] = [];
  return {
    log: createLog('error', { destination: { write: (line) => void errors.push(line) } }),
    errors,
  };
}

const CONNECTIONS = {
  'one pipelined connection each': connectPipelined,
  'many connections each': connectMany,
} as const;

type Connect = (typeof CONNECTIONS)[keyof typeof CONNECTIONS];

async function createUser(number: number, { issuer, ports }: Ports, by: Connect): Promise<User> {
  const sub = `user-${number}`;
  const token = await issuer.sign({ sub });
  const connections = ports.map((port) => by(port, HOST));
  connections.forEach(closeAfterTest);
  const post = (call: number) => connections[scattered(call) % connections.length]?.post ?? refuse;
  const initialized = await post(0)(
    { authorization: `Bearer ${token}` },
    JSON.stringify(INITIALIZE_REQUEST),
  );
  const session = initialized.headers['mcp-session-id'];
  if (session === undefined) throw new Error(`initialize answered ${initialized.text}`);
  return { sub, token, session, post };
}

const refuse: Post = () => Promise.reject(new Error('There is no port.'));

/** So that ids of both types, in both eras, reach every replica. */
const scattered = (call: number): number => Math.imul(call, 0x9e3779b1) >>> 16;

/** All of a plan's eras have the same ids, each as a number and as a string. */
interface Plan {
  readonly eras: readonly Call['era'][];
  readonly tools: readonly Call['tool'][];
  readonly count: number;
}

function callOf(number: number, { eras, tools }: Plan): Call {
  const id = Math.floor(number / 2 / eras.length) + 1;
  return {
    number,
    id: number % 2 === 0 ? id : String(id),
    era: eras[Math.floor(number / 2) % eras.length] ?? 'session',
    tool: tools[id % tools.length] ?? 'say-secret',
  };
}

async function callsOf(user: User, plan: Plan): Promise<readonly string[]> {
  const problems: string[] = [];
  let next = 0;
  async function work(): Promise<void> {
    while (next < plan.count / USERS && problems.length < 5) {
      const problem = await checkCall(user, callOf(next++, plan));
      if (problem !== undefined) problems.push(problem);
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT_PER_USER }, work));
  return problems;
}

async function problemsOf(where: Ports, plan: Plan, by: Connect): Promise<readonly string[]> {
  const users = await Promise.all(
    Array.from({ length: USERS }, (_, number) => createUser(number, where, by)),
  );
  expect(new Set(users.map(({ session }) => session)).size).toBe(USERS);
  const problems = await Promise.all(users.map((user) => callsOf(user, plan)));
  return problems.flat();
}

const PLANS: Readonly<Record<string, Plan>> = {
  'in the session era': {
    eras: ['session'],
    tools: ['say-secret'],
    count: CALLS,
  },
  'in the stateless era': {
    eras: ['stateless'],
    tools: ['say-secret'],
    count: CALLS,
  },
  'in both eras': { eras: ['session', 'stateless'], tools: ['say-secret'], count: MIXED_CALLS },
  'in both eras, some streamed': {
    eras: ['session', 'stateless'],
    tools: ['say-secret', 'count'],
    count: MIXED_CALLS,
  },
};

test.each(
  Object.entries(PLANS).flatMap(([when, plan]) =>
    Object.entries(CONNECTIONS).map(([how, by]) => ({ when, plan, how, by, count: plan.count })),
  ),
)(
  '§4.4 isolation: $count calls of 8 users $when, by $how, get their own answers',
  async ({ plan, by }) => {
    const where = await oneGateway();
    const problems = await problemsOf(where, plan, by);
    expect(where.errors).toEqual([]);
    expect(problems).toEqual([]);
  },
  LIMIT_MS,
);

test.each(Object.entries(PLANS))(
  `§4.4 isolation: ${MIXED_CALLS} calls of 8 users %s, to one of two replicas each, get their own answers`,
  async (_, plan) => {
    const where = await twoReplicas();
    const problems = await problemsOf(where, { ...plan, count: MIXED_CALLS }, connectPipelined);
    expect(where.errors).toEqual([]);
    expect(problems).toEqual([]);
  },
  LIMIT_MS,
);
