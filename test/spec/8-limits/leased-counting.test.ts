// §8.7: RATE_LIMIT_COUNTING=leased, as callers see it at two gateways over one Redis.
import { expect, test } from 'vitest';
import { INITIALIZE_REQUEST, type TestGateway } from '../../support/gateway/gateway.ts';
import { startTwoReplicas, type TwoReplicas } from '../../support/gateway/two-replicas.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

async function start(
  env: Readonly<Record<string, string>>,
  second: Readonly<Record<string, string>> = {},
): Promise<TwoReplicas> {
  const leased = { RATE_LIMIT_COUNTING: 'leased', ...env };
  return closeAfterTest(await startTwoReplicas({ env: leased }, { env: second }));
}

/** Headers and status of so many calls without a session, one after the other, as this user. */
async function call(gateway: TestGateway, replicas: TwoReplicas, sub: string, times: number) {
  const token = await replicas.one.issuer.sign({ sub });
  const answers: { readonly status: number; readonly remaining: number }[] = [];
  for (let at = 0; at < times; at += 1) {
    const { status, headers } = await gateway.rpc(INITIALIZE_REQUEST, { token });
    answers.push({ status, remaining: Number(headers['x-ratelimit-remaining']) });
  }
  return answers;
}

const countAdmitted = (answers: readonly { readonly status: number }[]) =>
  answers.filter(({ status }) => status === 200).length;

const HIGH = { MCP_RATE_LIMIT_MAX: '100000', MCP_GLOBAL_RATE_LIMIT_MAX: '100000' };

test('§8.7 at one gateway the limit of an address lets in exactly as many as it says, counting down', async () => {
  const replicas = await start({ MCP_RATE_LIMIT_MAX: '100' });
  const answers = await call(replicas.one, replicas, 'ada', 110);
  const [admitted, refused] = [answers.slice(0, 100), answers.slice(100)];
  expect(admitted).toEqual(
    Array.from({ length: 100 }, (_, at) => ({ status: 200, remaining: 99 - at })),
  );
  expect(refused.every(({ status }) => status === 429)).toBe(true);
});

test.each([
  { what: 'both leased', second: {} },
  { what: 'one of them by log', second: { RATE_LIMIT_COUNTING: 'log' } },
])('§8.7 two gateways let in no more than one, and a share less at most ($what)', async (row) => {
  const replicas = await start({ ...HIGH, MCP_USER_RATE_LIMIT_MAX: '200' }, row.second);
  const [first, second] = await Promise.all(
    [replicas.one, replicas.other].map((gateway) => call(gateway, replicas, 'ada', 150)),
  );
  const admitted = countAdmitted([...(first ?? []), ...(second ?? [])]);
  expect(admitted).toBeLessThanOrEqual(200);
  expect(admitted).toBeGreaterThanOrEqual(200 - 10);
});

test('§8.7 a user who floods is refused alone', async () => {
  const replicas = await start({ ...HIGH, MCP_USER_RATE_LIMIT_MAX: '100' });
  const [flood, other] = await Promise.all([
    call(replicas.one, replicas, 'eve', 250),
    call(replicas.one, replicas, 'ada', 100),
  ]);
  expect(countAdmitted(flood)).toBe(100);
  expect(countAdmitted(other)).toBe(100);
});

test('§8.7 a gateway that stops leaves its share to the others', async () => {
  const replicas = await start({ ...HIGH, MCP_USER_RATE_LIMIT_MAX: '100' });
  const before = await call(replicas.one, replicas, 'ada', 50);
  expect(countAdmitted(before)).toBe(50);
  await replicas.one.close();
  expect(countAdmitted(await call(replicas.other, replicas, 'ada', 60))).toBe(50);
});
