// Refreshes over two replicas at a server that takes a second use of a refresh token for theft: none is used twice, none is lost.
import { expect, test } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { asTimePasses } from '../../support/connections/as-time-passes.ts';
import { connect } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { KEEPS_TO_MCP, ROTATING, type ServerHabits } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { chooseCount, LONG_MS } from '../../support/tools/long-run.ts';

const HOUR_MS = 3_600_000;

async function start(habits: ServerHabits) {
  const clock = manualClock(1_800_000_000_000);
  const server = closeAfterTest(await startProtectedServer({ habits, clock }));
  const dead = new Set<number>();
  const gateway = closeAfterTest(
    await startConnectingGateway({
      clock,
      servers: { it: server.configure() },
      replicas: 2,
      env: { OAUTH_ACCESS_TTL_SECONDS: '86400' },
      wrapStore: (store, replica) => dyingStore(store, () => dead.has(replica)),
    }),
  );
  await connect(gateway, gateway.createBrowser({ person: 'ada', account: 'ada@work' }), 'it');
  const logIn = () => Promise.all([gateway.logIn('ada', 0), gateway.logIn('ada', 1)]);
  return { clock, server, gateway, logIn, kill: (replica: number) => void dead.add(replica) };
}

/** As a store from which its process was cut off: nothing is read, written or heard any more, and nothing is answered. */
function dyingStore(store: Store, isDead: () => boolean): Store {
  const never = new Promise<never>(() => {});
  return new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function' || name === 'close') return value;
      return (...args: unknown[]) => (isDead() ? never : value.apply(target, args));
    },
  });
}

test('§24.4 two replicas that need a new token at the same moment, round after round: one refresh each time, no token used twice, no connection lost', {
  timeout: LONG_MS,
}, async () => {
  const { clock, server, logIn } = await start(ROTATING);
  let users = await logIn();
  const rounds = chooseCount(4, 60);
  for (let round = 0; round < rounds; round += 1) {
    // The gateway's own tokens live for a day.
    if (round % 10 === 9) users = await logIn();
    clock.sleep(2 * HOUR_MS);
    const calls = [0, 1, 0, 1].map((replica) => users[replica]?.call('it__whoami'));
    const answers = await asTimePasses(clock, Promise.all(calls));
    expect(answers.map((answer) => answer?.text)).toEqual(answers.map(() => 'ada@work'));
  }
  expect(server.seen('token')).toHaveLength(1 + rounds);
  const used = server.seen('token').map(({ form }) => form.get('refresh_token'));
  expect(new Set(used).size).toBe(used.length);
});

test.for([
  ['one whose refresh tokens stay', { ...KEEPS_TO_MCP, usedRefreshToken: 'is kept' }, true],
  ['one that takes a second use for theft', ROTATING, false],
] satisfies (readonly [string, ServerHabits, boolean])[])(
  '§24.4 a replica dies between the answer of the server and its store, at %s: the connection survives there, or says that it needs a login',
  async ([, habits, survives]) => {
    const { clock, server, gateway, logIn, kill } = await start(habits);
    const users = await logIn();
    clock.sleep(2 * HOUR_MS);
    // The gateway learns by the first renewal what the server does.
    expect((await users[0]?.call('it__whoami'))?.text).toBe('ada@work');
    clock.sleep(2 * HOUR_MS);
    server.onRefresh = () => kill(0);
    // Nobody answers this one any more.
    void users[0]?.call('it__whoami').catch(() => {});
    await expect.poll(() => server.seen('token').length).toBe(3);
    const { redis } = gateway;
    // Redis keeps time of its own: what the dead one has locked is free again.
    for (const key of (await redis?.client().keys('*')) ?? [])
      if (key.includes('lock')) await redis?.client().del(key);
    const outcome = await asTimePasses(clock, users[1]?.call('it__whoami') ?? Promise.reject());
    expect(outcome.text).toMatch(
      survives ? /^ada@work$/ : new RegExp(`${gateway.baseUrl}/connections/it`),
    );
    if (!survives) {
      await connect(
        gateway,
        gateway.createBrowser({ person: 'ada', account: 'ada@work', replica: 1 }),
        'it',
      );
      expect((await users[1]?.call('it__whoami'))?.text).toBe('ada@work');
    }
  },
);
