// §12: MAX_BODY_VALUES: what takes long to parse is not parsed.
import { beforeAll, expect, test } from 'vitest';
import { startGateway } from '../../support/gateway/gateway.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const gateway = useGateway();
let session: string;
beforeAll(async () => {
  session = await gateway.open();
});

/** A ping with `params.x`: four values and what is in `x`, itself included. */
const ping = (x: string) => `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":${x}}}`;
/** What is around it: the message, jsonrpc, id, method and params. */
const AROUND = 5;

const listOf = (count: number, value: string) => `[${Array(count).fill(value).join(',')}]`;

test.each([
  ['numbers', '0', 1],
  ['strings', '","', 1],
  ['strings with escapes', '"\\",[{\\\\"', 1],
  ['literals', 'null', 1],
  ['empty objects', '{}', 1],
  ['empty objects with space', '{ \n}', 1],
  ['empty arrays', '[]', 1],
  ['objects of one member', '{"a":1}', 2],
  ['objects of two members', '{"a":"b","c":[]}', 3],
  ['arrays of one', '[ 1 ]', 2],
])('§4.4 MAX_BODY_VALUES counts %s', async (_what, value, each) => {
  const most = Math.floor((20_000 - AROUND - 1) / each);
  // Up to the limit exactly.
  const rest = 20_000 - AROUND - 1 - most * each;
  const just = `[${[...Array(most).fill(value), ...Array(rest).fill('1')].join(',')}]`;
  expect((await gateway.rpc(ping(just), { session })).status).toBe(200);
  const over = `[${[...Array(most).fill(value), ...Array(rest + 1).fill('1')].join(',')}]`;
  const { status, json } = await gateway.rpc(ping(over), { session });
  expect(status).toBe(413);
  expect(json.error.code).toBe(-32000);
  expect(json.error.data.details).toContain('20000');
  expect(json.error.data.details).toContain('MAX_BODY_VALUES');
  expect(json.id).toBeNull();
});

test('§4.4 1 MB of {},{},… is refused in less time than it takes to parse', async () => {
  const body = listOf(340_000, '{}');
  const parsing = await shortest(() => void JSON.parse(body));
  const refusing = await shortest(async () => {
    expect((await gateway.rpc(body, { session })).status).toBe(413);
  });
  expect(refusing).toBeLessThan(parsing);
});

/** Milliseconds of the quickest of five: other processes slow down some of them. */
async function shortest(run: () => void | Promise<void>): Promise<number> {
  const times = [];
  for (let time = 0; time < 5; time++) {
    const before = performance.now();
    await run();
    times.push(performance.now() - before);
  }
  return Math.min(...times);
}

test('§7.3 on OAuth routes it is told in their form', async () => {
  const register = await gateway.request({
    method: 'POST',
    path: '/oauth/register',
    body: `{"redirect_uris":${listOf(21_000, '1')}}`,
  });
  expect(register.status).toBe(413);
  expect(register.json.error).toBe('invalid_client_metadata');
  const token = await gateway.request({
    method: 'POST',
    path: '/oauth/token',
    body: listOf(21_000, '1'),
  });
  expect(token.status).toBe(413);
  expect(token.json.error).toBe('invalid_request');
});

test('§4.4 MAX_BODY_VALUES is a setting', async () => {
  const strict = await startGateway({ env: { MAX_BODY_VALUES: '100' } });
  try {
    const token = await strict.issuer.sign();
    const options = { session: await strict.open({ token }), token };
    expect((await strict.rpc(ping(listOf(94, '1')), options)).status).toBe(200);
    expect((await strict.rpc(ping(listOf(95, '1')), options)).status).toBe(413);
  } finally {
    await strict.close();
  }
});
