// The gateway's own tokens in any order of what can happen to them: a model says who has to be let in, and a real gateway
// has to do that, and nothing else.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { manualClock } from '../../support/gateway/clock.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { useShared } from '../../support/lifetimes.ts';
import {
  createOwnTokenLogins,
  type OwnTokenLogins,
  type Tokens,
  toTokens,
} from '../../support/oauth/own-tokens.ts';
import { startOpaqueProvider } from '../../support/providers/opaque-provider.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { chooseCount } from '../../support/tools/long-run.ts';

const WALKS = chooseCount(40, 1000);
const MAX_STEPS = 25;
const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

// The settings' defaults (§5.11).
const ACCESS_MS = HOUR_MS;
const RENEWAL_MS = HOUR_MS;
const GRACE_MS = HOUR_MS;
/** Between two requests to a provider that failed. */
const RETRY_MS = MINUTE_MS;
const REPLACED_MS = MINUTE_MS;

const UNLIMITED = '1000000';

async function startWalked() {
  const clock = manualClock(1_800_000_000_000);
  const provider = await startOpaqueProvider({ clock });
  const folder = await createTemporaryFolder();
  const open = () =>
    startGateway({
      deps: { clock },
      env: {
        BASE_URL: 'https://gw.example',
        DATA_DIR: folder.path,
        OAUTH_STATE_SECRET: 'a secret that outlives each process',
        OAUTH_CONSENT_RATE_LIMIT_MAX: UNLIMITED,
        OAUTH_CALLBACK_RATE_LIMIT_MAX: UNLIMITED,
        OAUTH_TOKEN_RATE_LIMIT_MAX: UNLIMITED,
        OAUTH_REFRESH_RATE_LIMIT_MAX: UNLIMITED,
        OAUTH_REFRESH_GRANT_RATE_LIMIT_MAX: UNLIMITED,
        OAUTH_REVOKE_RATE_LIMIT_MAX: UNLIMITED,
        ...provider.env,
      },
    });
  let gateway: TestGateway = await open();
  let logins: OwnTokenLogins = createOwnTokenLogins(gateway, provider);
  return {
    clock,
    provider,
    get logins() {
      return logins;
    },
    async restart() {
      await gateway.close();
      gateway = await open();
      logins = createOwnTokenLogins(gateway, provider);
    },
    async close() {
      await gateway.close();
      await provider.close();
      await folder.close();
    },
  };
}

const system = useShared(startWalked);

/** Tokens that were given together. */
interface Pair {
  readonly tokens: Tokens;
  readonly issuedAt: number;
  isUsed: boolean;
}

interface Login {
  readonly sub: string;
  /** The last is the current one. */
  readonly pairs: Pair[];
  /** Which one that took the place of, and when. */
  replaced?: { readonly at: number; readonly pair: Pair };
  hasEnded: boolean;
  /** The provider says no when it is asked. */
  isDisabled: boolean;
  renewedAt: number;
  failedAt?: number | undefined;
  triedAt?: number | undefined;
}

interface World {
  readonly logins: Login[];
  isProviderUp: boolean;
}

/** Of the pairs of a login, counted from the last. */
type Back = number;

type Step =
  | { readonly kind: 'log in' }
  | { readonly kind: 'call'; readonly at: number; readonly back: Back }
  /** `isLost`: the answer does not arrive, and the client asks again. */
  | { readonly kind: 'refresh'; readonly at: number; readonly back: Back; readonly isLost: boolean }
  | { readonly kind: 'revoke'; readonly at: number; readonly by: 'access' | 'refresh' }
  | { readonly kind: 'disable'; readonly at: number }
  | { readonly kind: 'provider'; readonly behaviour: 'ok' | 'down' | 'error' | 'busy' | 'refuse' }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'restart' };

const at = fc.nat(3);
const back = fc.oneof(
  { weight: 4, arbitrary: fc.constant(0) },
  { weight: 2, arbitrary: fc.constant(1) },
  fc.constant(2),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('log in' as const) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('call' as const), at, back }) },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('refresh' as const), at, back, isLost: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('revoke' as const),
      at,
      by: fc.constantFrom('access' as const, 'refresh' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('disable' as const), at }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('provider' as const),
      behaviour: fc.constantFrom(
        ...(['ok', 'ok', 'ok', 'down', 'error', 'busy', 'refuse'] as const),
      ),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      ms: fc.constantFrom(20 * SECOND_MS, 61 * SECOND_MS, 31 * MINUTE_MS, 61 * MINUTE_MS),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
);

const currentOf = ({ pairs }: Login): Pair => {
  const pair = pairs.at(-1);
  if (pair === undefined) throw new Error('A login has tokens');
  return pair;
};

const pairOf = (login: Login, stepsBack: Back): Pair =>
  login.pairs.at(-1 - Math.min(stepsBack, login.pairs.length - 1)) ?? currentOf(login);

/** What /mcp has to say: 200, or the reason of the refusal. */
function expectedOfCall(login: Login, pair: Pair): string {
  if (system.clock.now() >= pair.issuedAt + ACCESS_MS) return 'expired_token';
  return login.hasEnded ? 'token_revoked' : '200';
}

async function call(login: Login, pair: Pair): Promise<void> {
  const expected = expectedOfCall(login, pair);
  const { status, json } = await system.logins.call(pair.tokens.access);
  expect(status === 200 ? '200' : json.error.data.reason).toBe(expected);
  if (expected !== '200' || pair !== currentOf(login) || pair.isUsed) return;
  pair.isUsed = true;
  // Nobody waits until that is noted; but what is written later is there later.
  await system.logins.steps.register();
}

/** What the token endpoint has to say, and what the login is then. */
function expectRefresh(world: World, login: Login, pair: Pair): 'again' | 'new' | 'out' | 'later' {
  const now = system.clock.now();
  const current = currentOf(login);
  if (login.hasEnded) return 'out';
  const isReplaced = login.replaced?.pair === pair;
  const isInTime =
    isReplaced && (!current.isUsed || now - (login.replaced?.at ?? 0) <= REPLACED_MS);
  if (pair !== current && !isInTime) {
    login.hasEnded = true;
    return 'out';
  }
  if (now - login.renewedAt >= RENEWAL_MS) {
    const isLeftAlone = login.triedAt !== undefined && now - login.triedAt < RETRY_MS;
    if (!isLeftAlone && !world.isProviderUp) {
      login.failedAt ??= now;
      login.triedAt = now;
    } else if (!isLeftAlone && login.isDisabled) {
      login.hasEnded = true;
      return 'out';
    } else if (!isLeftAlone) {
      login.renewedAt = now;
      login.failedAt = undefined;
      login.triedAt = undefined;
    }
    if (login.failedAt !== undefined && now - login.failedAt >= GRACE_MS) return 'later';
  }
  if (current.issuedAt + ACCESS_MS - now > ACCESS_MS / 2) {
    if (pair === current) current.isUsed = true;
    return 'again';
  }
  return 'new';
}

async function refresh(world: World, login: Login, pair: Pair): Promise<void> {
  const expected = expectRefresh(world, login, pair);
  const answer = await system.logins.refresh(pair.tokens);
  if (expected === 'out') {
    expect([answer.status, answer.json.error]).toEqual([400, 'invalid_grant']);
    return;
  }
  if (expected === 'later') {
    expect([answer.status, answer.json.error]).toEqual([503, 'temporarily_unavailable']);
    return;
  }
  const { access, refresh: token } = toTokens(pair.tokens.client, answer);
  const current = currentOf(login);
  if (expected === 'again') {
    expect([access, token]).toEqual([current.tokens.access, current.tokens.refresh]);
    return;
  }
  for (const { tokens } of login.pairs) {
    expect(access).not.toBe(tokens.access);
    expect(token).not.toBe(tokens.refresh);
  }
  const now = system.clock.now();
  login.replaced = { at: now, pair };
  const tokens = { ...pair.tokens, access, refresh: token };
  login.pairs.push({ tokens, issuedAt: now, isUsed: false });
}

let users = 0;

async function logIn(world: World): Promise<void> {
  if (!world.isProviderUp) return;
  users += 1;
  const sub = `walker-${users}`;
  const tokens = await system.logins.logIn({ sub });
  const now = system.clock.now();
  world.logins.push({
    sub,
    pairs: [{ tokens, issuedAt: now, isUsed: false }],
    hasEnded: false,
    isDisabled: false,
    renewedAt: now,
  });
}

async function take(world: World, one: Step): Promise<void> {
  if (one.kind === 'log in') return logIn(world);
  if (one.kind === 'wait') return system.clock.advance(one.ms);
  if (one.kind === 'restart') return system.restart();
  if (one.kind === 'provider') {
    world.isProviderUp = one.behaviour === 'ok';
    return system.provider.behave(one.behaviour);
  }
  const login = world.logins[one.at % world.logins.length];
  if (login === undefined) return;
  if (one.kind === 'call') return call(login, pairOf(login, one.back));
  if (one.kind === 'refresh') {
    const pair = pairOf(login, one.back);
    await refresh(world, login, pair);
    return one.isLost ? refresh(world, login, pair) : undefined;
  }
  if (one.kind === 'disable') {
    login.isDisabled = true;
    return system.provider.disable(login.sub);
  }
  const { tokens } = currentOf(login);
  const form = { token: tokens[one.by], client_id: tokens.client.id };
  expect((await system.logins.steps.post('/oauth/revoke', form)).status).toBe(200);
  login.hasEnded = true;
}

test('§5.11 whatever happens in whatever order, nobody is let in or thrown out wrongly', {
  timeout: 30 * MINUTE_MS,
}, async () => {
  const walks = fc.asyncProperty(fc.array(step, { maxLength: MAX_STEPS }), async (steps) => {
    system.provider.behave('ok');
    const world: World = { logins: [], isProviderUp: true };
    await logIn(world);
    for (const one of steps) await take(world, one);
    for (const login of world.logins) {
      for (const pair of login.pairs) await call(login, pair);
    }
  });
  await fc.assert(walks, { numRuns: WALKS });
});
