// npm run bench -- tokens: a call with a token of the gateway's own beside one with a JWT whose signature is remembered, in
// alternating rounds, and what a refresh costs that needs no provider, for clients one at a time and at once.
import { Redis } from 'ioredis';
import { createHttpRequest } from '../test/support/gateway/http-request.ts';
import { createOwnTokenLogins, type Tokens, toTokens } from '../test/support/oauth/own-tokens.ts';
import {
  type OpaqueProvider,
  startOpaqueProvider,
} from '../test/support/providers/opaque-provider.ts';
import { createCall } from './calls.ts';
import { checkAnswers } from './check-answers.ts';
import { type Contestant, type Era, runPostern } from './contestants.ts';
import { judgeAtMost, renderGoal } from './goals.ts';
import type { Options } from './options.ts';
import { computeMedian } from './results.ts';
import { type Round, type Runner, runRound } from './rounds.ts';
import { createRedisMeter, type RedisMeter } from './scaling/redis-meter.ts';
import type { ServerProcess } from './server-process.ts';
import { openTestbed, type Testbed } from './testbed.ts';
import { runWrk } from './wrk.ts';

type StoreKind = 'embedded' | 'redis';
type TokenKind = 'jwt' | 'own';

/** Two services that differ in their callers' tokens only. */
interface Pair {
  readonly store: StoreKind;
  readonly era: Era;
  readonly runners: Readonly<Record<TokenKind, Runner>>;
}

interface MeasuredRound extends Round {
  readonly redisMicroseconds: number;
}

const UNLIMITED = '1000000000';
const OWN_TOKENS = {
  OIDC_AUDIENCE: '',
  DCR_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_AUTHORIZE_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_CONSENT_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_CALLBACK_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_STATE_SECRET: 'one-secret-for-all-that-is-measured',
  OAUTH_TOKEN_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_TOKEN_GLOBAL_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_REFRESH_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_REFRESH_GRANT_RATE_LIMIT_MAX: UNLIMITED,
  OAUTH_REFRESH_GLOBAL_RATE_LIMIT_MAX: UNLIMITED,
};

export async function measureTokens(options: Options): Promise<void> {
  const testbed = await openTestbed();
  const provider = await startOpaqueProvider();
  const redis = new Redis(testbed.redisUrl);
  try {
    for (const store of ['embedded', 'redis'] as const) {
      for (const era of ['session', 'stateless'] as const) {
        if (options.only.length > 0 && !options.only.includes(`${store}-${era}`)) continue;
        const pair = await preparePair(testbed, provider, { store, era }, options.plan);
        await measurePair(testbed, pair, createRedisMeter(redis), options.plan);
        await Promise.all(Object.values(pair.runners).map(({ server }) => server.stop()));
      }
    }
    for (const store of ['embedded', 'redis'] as const) {
      if (options.only.length > 0 && !options.only.includes('refresh')) continue;
      const server = await startOwn(testbed, provider, store);
      await measureRefreshes(server, provider, store, options.plan);
      await server.stop();
    }
  } finally {
    redis.disconnect();
    await testbed.close();
    await provider.close();
  }
}

const startOwn = (testbed: Testbed, provider: OpaqueProvider, store: StoreKind) =>
  testbed.start(runPostern(store, { ...OWN_TOKENS, ...provider.env }));

const openLogins = ({ url }: ServerProcess, provider: OpaqueProvider) =>
  createOwnTokenLogins({ request: createHttpRequest(new URL(url).origin) }, provider);

async function preparePair(
  testbed: Testbed,
  provider: OpaqueProvider,
  { store, era }: Pick<Pair, 'store' | 'era'>,
  { warmUpSeconds }: Options['plan'],
): Promise<Pair> {
  const jwt = await testbed.start(runPostern(store));
  const own = await startOwn(testbed, provider, store);
  const { access } = await openLogins(own, provider).logIn();
  const calls = {
    jwt: await testbed.createCall(jwt, era),
    own: await createCall(own.url, access, era),
  };

  async function warm(kind: TokenKind, server: ServerProcess): Promise<Runner> {
    const call = calls[kind];
    const expected = await checkAnswers(call);
    await runWrk(testbed.folder, { call, expected, connections: 32, seconds: warmUpSeconds });
    const contestant: Contestant = {
      name: kind,
      label: kind,
      era,
      command: runPostern(store),
      isQuick: true,
    };
    return { contestant, server, call, expected };
  }

  return { store, era, runners: { jwt: await warm('jwt', jwt), own: await warm('own', own) } };
}

async function measurePair(
  testbed: Testbed,
  { store, era, runners }: Pair,
  meter: RedisMeter,
  { connections: counts, rounds, seconds }: Options['plan'],
): Promise<void> {
  for (const connections of counts) {
    const found: Record<TokenKind, MeasuredRound[]> = { jwt: [], own: [] };
    for (let n = 0; n < rounds; n += 1) {
      const order = n % 2 === 0 ? (['jwt', 'own'] as const) : (['own', 'jwt'] as const);
      for (const kind of order) {
        const before = await meter.read();
        const round = await runRound(testbed, runners[kind], connections, seconds);
        if (round.failures > 0)
          throw new Error(`${kind}: ${round.wrongAnswer ?? round.socketErrors}`);
        const { cpuMicroseconds } = meter.computeUse(before, await meter.read(), round.requests);
        found[kind].push({ ...round, redisMicroseconds: cpuMicroseconds });
      }
    }
    printPair(`${store}, ${era}, ${connections} connections`, store, found);
  }
}

function printPair(
  title: string,
  store: StoreKind,
  { jwt, own }: Readonly<Record<TokenKind, readonly MeasuredRound[]>>,
): void {
  const describe = (rounds: readonly MeasuredRound[]) => ({
    'CPU µs': round(computeMedian(rounds.map(({ cpuMicroseconds }) => cpuMicroseconds))),
    'p50 ms': round(computeMedian(rounds.map(({ p50Ms }) => p50Ms))),
    ...(store === 'redis' && {
      'Redis µs': round(computeMedian(rounds.map(({ redisMicroseconds }) => redisMicroseconds))),
    }),
  });
  const compare = (compute: (one: MeasuredRound, other: MeasuredRound) => number) =>
    computeMedian(own.flatMap((one, n) => (jwt[n] === undefined ? [] : [compute(one, jwt[n])])));
  console.log(`\n${title}`);
  console.table({ 'JWT, signature remembered': describe(jwt), 'own token': describe(own) });
  const ratio = compare((one, other) => one.cpuMicroseconds / other.cpuMicroseconds);
  console.log(`  CPU: ${renderGoal(judgeAtMost(1, ratio, ' of the JWT’s'))}`);
  if (store === 'embedded') return;
  const more = compare((one, other) => one.redisMicroseconds - other.redisMicroseconds);
  console.log(`  Redis: ${renderGoal(judgeAtMost(3, more, ' µs more'))}`);
}

/** Alternating, so that each one asks for what the tokens before are not for: they are new each time. */
const SCOPES = ['openid', 'openid profile'] as const;
/** Each with a login of its own. */
const CLIENTS = 16;
/** Of each client in a round: an even number, so that a round ends with what was granted. */
const REFRESHES = 40;
/** Until the code that a refresh runs is compiled, as it is in a gateway that is in use. */
const WARM_UPS = 60;

type AskOnce = (client: number, n: number) => Promise<void>;

/** A commit of the embedded store is shared by those that refresh at the same time, and is one's own otherwise. */
const LOADS = {
  'one at a time': async (times: number, ask: AskOnce) => {
    for (let n = 0; n < times; n += 1)
      for (let client = 0; client < CLIENTS; client += 1) await ask(client, n);
  },
  [`${CLIENTS} at once`]: async (times: number, ask: AskOnce) => {
    const clients = Array.from({ length: CLIENTS }, (_, client) => client);
    for (let n = 0; n < times; n += 1) await Promise.all(clients.map((client) => ask(client, n)));
  },
};

async function measureRefreshes(
  server: ServerProcess,
  provider: OpaqueProvider,
  store: StoreKind,
  { rounds }: Options['plan'],
): Promise<void> {
  const logins = openLogins(server, provider);
  const held: Tokens[] = [];
  for (let n = 0; n < CLIENTS; n += 1) held.push(await logins.logIn({ sub: `user-${n}` }));

  async function refresh(at: number, change: Readonly<Record<string, string>>): Promise<void> {
    const tokens = held[at];
    if (tokens) held[at] = toTokens(tokens.client, await logins.refresh(tokens, change));
  }

  const kinds: Readonly<Record<string, AskOnce>> = {
    'an empty request, for comparison': async () => void (await logins.steps.get('/health')),
    'the same pair again': (at) => refresh(at, {}),
    'a new pair': (at, n) => refresh(at, { scope: SCOPES[n % 2] ?? '' }),
  };
  for (const ask of Object.values(kinds)) {
    for (const load of Object.values(LOADS)) await load(WARM_UPS, ask);
  }
  for (const [loadName, load] of Object.entries(LOADS)) {
    const found = new Map<string, number[]>();
    for (let n = 0; n < rounds; n += 1) {
      for (const [kind, ask] of Object.entries(kinds)) {
        const before = server.readCpuSeconds();
        await load(REFRESHES, ask);
        const ms = ((server.readCpuSeconds() - before) * 1000) / (REFRESHES * CLIENTS);
        found.set(kind, [...(found.get(kind) ?? []), ms]);
      }
    }
    console.log(`\nRefresh without the provider, ${store}, ${loadName}`);
    for (const [kind, all] of found) {
      console.log(`  ${kind}: ${renderGoal(judgeAtMost(1, computeMedian(all), ' ms of CPU'))}`);
    }
  }
  if (provider.asked.refresh > 0) throw new Error('The provider was asked');
}

const round = (value: number): number => Number(value.toPrecision(3));
