import { describe, expect, test } from 'vitest';
import type { Fetch } from '../../../src/platform/fetch-with-limits.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import {
  INITIALIZE_REQUEST,
  startGateway,
  type TestGateway,
  type TestResponse,
} from '../../support/gateway/gateway.ts';
import { flushLoopback } from '../../support/gateway/manual-connection.ts';
import { seriesOf } from '../../support/gateway/metrics.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { type Behaviour, startIssuer } from '../../support/oauth/issuer.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const FAR_FUTURE = 4_102_444_800;

let clock: ManualClock;
let gateway: TestGateway;
/** Every address that the gateway asked for. */
let asked: string[];
/** Requests reach the provider when this resolves. */
let reachable: Promise<void>;

/** `https://login.example/…` leads to the test's provider. */
const fetchFromProvider: Fetch = async (url, init) => {
  asked.push(String(url));
  await reachable;
  const { pathname } = new URL(String(url));
  const document = pathname.endsWith('openid-configuration')
    ? '/.well-known/openid-configuration'
    : pathname;
  return fetch(`${gateway.issuer.url}${document}`, init);
};

/** Closes the way to the provider; what it returns opens it again. */
function hold(): () => void {
  let open = () => {};
  reachable = new Promise((resolve) => {
    open = resolve;
  });
  return open;
}

/** A gateway that asks for the key set for the first time when the provider behaves like this. */
async function start(behaviour: Behaviour, env: Record<string, string> = {}): Promise<void> {
  asked = [];
  clock = manualClock(1_800_000_000_000);
  const open = hold();
  gateway = closeAfterTest(await startGateway({ env, deps: { clock, fetch: fetchFromProvider } }));
  gateway.issuer.behave(behaviour);
  open();
}

/** A gateway with keys, whose next fetch may begin at once. */
async function startWarm(env: Record<string, string> = {}): Promise<void> {
  await start('ok', env);
  expect((await send(await token())).status).toBe(200);
  clock.advance(2000);
}

const token = (kid?: string) =>
  gateway.issuer.sign({ exp: FAR_FUTURE }, kid === undefined ? {} : { kid });

const send = (sent: string) => gateway.rpc(INITIALIZE_REQUEST, { token: sent });

/** Holds once, within ten seconds of the tests' time. */
const eventually = (condition: () => unknown) =>
  expect.poll(condition, { interval: 5, timeout: 10_000 });

/** Moves the time on in small steps until the answer is there. */
async function inTime<Result>(pending: Promise<Result>): Promise<Result> {
  let done = false;
  void pending.finally(() => {
    done = true;
  });
  await eventually(() => {
    if (!done) clock.advance(100);
    return done;
  }).toBe(true);
  return pending;
}

const refreshes = async (status: 'success' | 'error') =>
  (await seriesOf(gateway, 'jwks_refresh_total', { status })) ?? 0;

/** Moves the time on by `ms`, by when a refresh is due, and waits for its end. */
async function refreshedAfter(ms: number, status: 'success' | 'error'): Promise<void> {
  const before = await refreshes(status);
  clock.advance(ms);
  await eventually(() => refreshes(status)).toBe(before + 1);
}

function expectUnavailable({ status, headers, json }: TestResponse): void {
  expect(status).toBe(503);
  expect(json.error).toMatchObject({ code: -32000, message: 'Service Unavailable' });
  expect(headers['www-authenticate']).toBeUndefined();
}

const outages = () =>
  gateway.log.filter(({ level, msg }) => level === 'error' && msg.includes('cannot be fetched'));

const FAULTS: readonly Behaviour[] = [
  'down',
  'error',
  'garbage',
  'no set',
  'empty',
  'huge',
  'redirect',
];

describe('a provider that is out of order', () => {
  test.each(FAULTS)('§5 never fetched, provider %s: 503, and it heals by itself', async (fault) => {
    await start(fault);
    expectUnavailable(await send(await token()));
    expect((await gateway.request({ path: '/health/ready' })).status).toBe(503);
    expect(outages()).toHaveLength(1);
    expect(outages()[0]?.msg).toMatch(/none of the provider's tokens .* nobody can log in/);

    gateway.issuer.behave('ok');
    await refreshedAfter(10_000, 'success');
    expect((await send(await token())).status).toBe(200);
    expect((await gateway.request({ path: '/health/ready' })).status).toBe(200);
    expect(gateway.issuer.fetches.elsewhere).toBe(0);
  });

  test.each(FAULTS)(
    '§5 keys known, provider %s: known tokens pass, others get 503',
    async (fault) => {
      await startWarm();
      const known = await token();
      gateway.issuer.behave(fault);
      await refreshedAfter(10 * MINUTE, 'error');
      expect((await send(known)).status).toBe(200);
      clock.advance(2000);
      expectUnavailable(await inTime(send(await token('unknown'))));
      expect((await send(known)).status).toBe(200);
      expect((await gateway.request({ path: '/health/ready' })).status).toBe(200);
      expect(outages()).toHaveLength(1);

      gateway.issuer.behave('ok');
      await gateway.issuer.rotate();
      await refreshedAfter(10_000, 'success');
      expect((await send(await token())).status).toBe(200);
      expect(gateway.issuer.fetches.elsewhere).toBe(0);
    },
  );

  test('§5 a provider that never answers: known tokens pass at once, others get 503', async () => {
    await startWarm();
    const known = await token();
    gateway.issuer.behave('slow');
    const unknown = send(await token('unknown'));
    await eventually(() => {
      clock.advance(0);
      return gateway.issuer.fetches.keys;
    }).toBe(2);
    expect((await send(known)).status).toBe(200);
    expectUnavailable(await unknown);
  });

  test('§5 25 hours without the provider: no known token is refused', async () => {
    await startWarm();
    const known = await token();
    gateway.issuer.behave('down');
    for (let hour = 0; hour < 25; hour += 1) {
      await refreshedAfter(HOUR, 'error');
      expect((await send(known)).status).toBe(200);
    }
    gateway.issuer.behave('ok');
    await refreshedAfter(10_000, 'success');
    expect((await send(known)).status).toBe(200);
  });
});

describe('fetching the key set', () => {
  test('§5 2,000 first requests at once: one fetch, and all are served', async () => {
    await start('down');
    expectUnavailable(await send(await token()));
    gateway.issuer.behave('ok');
    const open = hold();
    clock.advance(2000);
    const [good, before] = [await token(), gateway.issuer.fetches.keys];
    const pending = Array.from({ length: 2000 }, () => send(good));
    open();
    clock.advance(0);
    const answers = await inTime(Promise.all(pending));
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expect(gateway.issuer.fetches.keys).toBe(before + 1);
  });

  test('§5 the first fetch begins at start, before any request', async () => {
    await start('ok');
    await eventually(() => refreshes('success')).toBe(1);
    expect((await gateway.request({ path: '/health/ready' })).status).toBe(200);
  });

  test('§5 a stop in the middle of it is no alarm', async () => {
    const issuer = closeAfterTest(await startIssuer());
    issuer.behave('slow');
    const stopped = await startGateway({ env: { OIDC_ISSUER: issuer.url } });
    await eventually(() => issuer.fetches.keys).toBe(1);
    await stopped.close();
    await flushLoopback();
    expect(stopped.log.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
  });

  test('§5 a refresh in the background every 10 minutes finds a new key before its token', async () => {
    await startWarm();
    await gateway.issuer.rotate();
    await refreshedAfter(10 * MINUTE, 'success');
    const before = gateway.issuer.fetches.keys;
    expect((await send(await token())).status).toBe(200);
    expect(gateway.issuer.fetches.keys).toBe(before);
  });

  test('§7.1 a key that the provider withdrew: invalid_token after the next refresh', async () => {
    await startWarm();
    const old = await token();
    await gateway.issuer.rotate();
    expect((await send(old)).status).toBe(200);
    await refreshedAfter(10 * MINUTE, 'success');
    const { status, json } = await inTime(send(old));
    expect([status, json.error.data.reason]).toEqual([401, 'invalid_token']);
  });

  test('§5 a key that rotates again and again: no token is refused', async () => {
    await startWarm();
    for (let turn = 0; turn < 25; turn += 1) {
      await gateway.issuer.rotate('ES256');
      const next = await gateway.issuer.sign({ exp: FAR_FUTURE }, { alg: 'ES256' });
      const answers = await inTime(Promise.all([send(next), send(await token()), send(next)]));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    }
  });

  test('§5 a flood of unknown kids: one fetch in two seconds, and known tokens pass at once', async () => {
    await startWarm();
    const known = await token();
    const before = gateway.issuer.fetches.keys;
    const flood: Promise<TestResponse>[] = [];
    for (let step = 0; step < 20; step += 1) {
      for (let one = 0; one < 25; one += 1) flood.push(send(await token(`kid-${step}-${one}`)));
      expect((await send(known)).status).toBe(200);
      clock.advance(500);
    }
    const answers = await inTime(Promise.all(flood));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    expect(answers[0]?.json.error.data.reason).toBe('invalid_token');
    const fetches = gateway.issuer.fetches.keys - before;
    expect(fetches).toBeGreaterThan(0);
    // Ten seconds of flood, and the last ones' wait.
    expect(fetches).toBeLessThanOrEqual(7);
  });
});

describe("the provider's discovery document", () => {
  const metadata = () => gateway.request({ path: '/.well-known/oauth-authorization-server' });

  test.each(['https://login.example', 'https://login.example/', 'https://login.example/tenant/'])(
    '§5 OIDC_ISSUER %s: one slash before .well-known; iss is compared unchanged',
    async (issuer) => {
      await start('ok', { OIDC_ISSUER: issuer });
      gateway.issuer.document = { issuer };
      const answer = await send(await gateway.issuer.sign({ iss: issuer }));
      expect(answer.status).toBe(200);
      const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
      expect(asked).toEqual([url, `${gateway.issuer.url}/jwks`]);
      const other = issuer.endsWith('/') ? issuer.slice(0, -1) : `${issuer}/`;
      const refused = await send(await gateway.issuer.sign({ iss: other }));
      expect(refused.json.error.data.reason).toBe('invalid_issuer');
    },
  );

  test('§5 OIDC_JWKS_URL is used as it stands, without discovery', async () => {
    await startWarm({ OIDC_JWKS_URL: 'https://login.example/jwks' });
    expect(asked).toEqual(['https://login.example/jwks']);
  });

  const errors = () => gateway.log.filter(({ level }) => level === 'error');
  const ready = async () => (await gateway.request({ path: '/health/ready' })).status;

  test('§5 a document of another issuer is not used: one error, not ready, tokens 503; it heals', async () => {
    await start('ok');
    gateway.issuer.document = { issuer: 'https://other.example' };
    expectUnavailable(await send(await token()));
    expect(await ready()).toBe(503);
    await refreshedAfter(10_000, 'error');
    await refreshedAfter(10_000, 'error');
    expectUnavailable(await inTime(send(await token())));
    expect(await metadata()).toMatchObject({
      status: 500,
      text: expect.stringMatching(/could not be loaded\. The gateway's log has the reason/),
    });
    expect(gateway.issuer.fetches.discovery).toBeGreaterThan(1);
    expect(gateway.issuer.fetches.keys).toBe(0);

    const said = errors().filter(({ msg }) => msg !== 'Failed.');
    expect(said).toHaveLength(1);
    expect(said[0]?.msg).toMatch(/"https:\/\/other\.example".*OIDC_ISSUER.*OIDC_JWKS_URL/);
    expect(said[0]).toMatchObject({
      found: 'https://other.example',
      expected: gateway.issuer.url,
      url: `${gateway.issuer.url}/.well-known/openid-configuration`,
    });

    gateway.issuer.document = {};
    await refreshedAfter(10_000, 'success');
    expect((await send(await token())).status).toBe(200);
    expect(await ready()).toBe(200);
  });

  test.each([
    { ours: 'https://login.example', theirs: 'https://login.example/', says: 'without the slash' },
    { ours: 'https://login.example/', theirs: 'https://login.example', says: 'with the slash' },
  ])('§5 OIDC_ISSUER $ours, document of $theirs: the error says $says', async (row) => {
    await start('ok', { OIDC_ISSUER: row.ours });
    gateway.issuer.document = { issuer: row.theirs };
    expectUnavailable(await send(await gateway.issuer.sign({ iss: row.ours })));
    expect(errors()[0]?.msg).toContain(`${row.says} at the end (OIDC_ISSUER)`);
  });

  test('§5 with OIDC_JWKS_URL a document of another issuer keeps nobody out', async () => {
    await start('ok', { OIDC_JWKS_URL: 'https://login.example/jwks' });
    gateway.issuer.document = { issuer: 'https://other.example' };
    expect((await send(await token())).status).toBe(200);
    expect(await ready()).toBe(200);
    const { status, json } = await metadata();
    expect([status, json.jwks_uri]).toEqual([200, 'https://login.example/jwks']);
  });

  test('§5 a document that becomes that of another issuer: the one before stays in use', async () => {
    await startWarm();
    const known = await token();
    gateway.issuer.document = { issuer: 'https://other.example' };
    await refreshedAfter(10 * MINUTE, 'success');
    await refreshedAfter(10 * MINUTE, 'success');
    expect((await send(known)).status).toBe(200);
    expect(errors()).toHaveLength(1);
  });

  test.each([
    { member: 'jwks_uri', value: undefined },
    { member: 'jwks_uri', value: 5 },
    { member: 'jwks_uri', value: '' },
    { member: 'jwks_uri', value: '/jwks' },
    { member: 'jwks_uri', value: 'file:///etc/passwd' },
    { member: 'jwks_uri', value: 'https://' },
    { member: 'issuer', value: undefined },
    { member: 'issuer', value: 5 },
  ])('§5 a document whose $member is $value: 503', async ({ member, value }) => {
    await start('ok');
    gateway.issuer.document = { [member]: value };
    expectUnavailable(await send(await token()));
    expect(asked).toHaveLength(1);
  });

  test('§4.10 it is fetched once for many, kept for five minutes, and stale while it is down', async () => {
    await startWarm();
    const { discovery } = gateway.issuer.fetches;
    expect(discovery).toBe(1);
    clock.advance(5 * MINUTE - 2001);
    await metadata();
    expect(gateway.issuer.fetches.discovery).toBe(1);

    clock.advance(1);
    gateway.issuer.document = { jwks_uri: `${gateway.issuer.url}/jwks?new` };
    const answers = await Promise.all(Array.from({ length: 50 }, metadata));
    expect(new Set(answers.map(({ json }) => json.jwks_uri))).toEqual(
      new Set([`${gateway.issuer.url}/jwks?new`]),
    );
    expect(gateway.issuer.fetches.discovery).toBe(2);

    gateway.issuer.behave('down');
    clock.advance(HOUR);
    await eventually(() => refreshes('error')).toBe(1);
    expect((await metadata()).json.jwks_uri).toBe(`${gateway.issuer.url}/jwks?new`);
  });

  test('§4.10 never fetched and down: 500, and the provider is asked once in two seconds', async () => {
    await start('down');
    for (let time = 0; time < 20; time += 1) expect((await metadata()).status).toBe(500);
    expect(gateway.issuer.fetches.discovery).toBe(1);
    gateway.issuer.behave('ok');
    clock.advance(2000);
    expect((await metadata()).status).toBe(200);
  });
});
