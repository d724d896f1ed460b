// Roots are folders on the machines of users: which servers are told them.
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { lastOf, openClient } from '../../support/clients/session-client.ts';
import {
  ASKABLE,
  askingCall,
  CLIENT_CAPABILITIES,
  callTool,
} from '../../support/clients/stateless.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { sendJson, startRawServer } from '../../support/upstreams/raw-server.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import { saidIn, textOf } from '../../support/upstreams/relay-retry.ts';
import { startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';
import { startRelayServer2 } from '../../support/upstreams/relay-server-2.ts';

const one = useShared(startRelayServer1);
const two = useShared(startRelayServer2);

// biome-ignore lint/suspicious/noExplicitAny: a response of any shape
const heardIn = ({ result }: any): unknown => JSON.parse(result.content[0].text);
const PROGRAM = fileURLToPath(new URL('../../support/upstreams/sdk-2-server.mjs', import.meta.url));
const ABLE = { elicitation: {}, roots: {} };

async function start(roots: boolean, servers?: Readonly<Record<string, string | object>>) {
  const gateway = closeAfterTest(
    await startRelayGateway({ servers: servers ?? { one: one.url, two: two.url }, roots }),
  );
  const noted = () => gateway.log.filter(({ msg }) => msg.includes('"roots": true'));
  return { gateway, noted };
}

test('§18.3 without "roots": true no server is told that a client has roots', async () => {
  const { gateway, noted } = await start(false);
  const client = await openClient(gateway, { capabilities: ABLE });
  expect(heardIn(await client.ask('tools/call', { name: 'one__declared' }))).toEqual({
    elicitation: { form: {} },
  });
  const asked = await callTool(gateway, 'one__declared', {}, { meta: ASKABLE });
  expect(saidIn(asked)).toEqual({ elicitation: { form: {} }, sampling: {} });
  expect(noted()).toEqual([]);
});

describe('a stateless server that refuses a call for want of roots', () => {
  const NOT_TOLD = /^\w+ needs roots for this call\. .*"roots": true/;

  test('§18.3 a client that has them, of either era, reads that the file keeps them; the log says so, once', async () => {
    const { gateway, noted } = await start(false);
    const asked = await callTool(gateway, 'two__ask-both', undefined, { meta: ASKABLE });
    expect(asked.json.result).toMatchObject({ isError: true });
    expect(textOf(asked)).toMatch(NOT_TOLD);
    const client = await openClient(gateway, { capabilities: ABLE });
    const { result } = await lastOf(await client.call('two__ask-both'));
    expect(result.isError).toBe(true);
    expect(result.content[0].text).toMatch(NOT_TOLD);
    expect(noted()).toMatchObject([{ level: 'warn', server: 'two' }]);
  });

  test('§18.3 a client without them reads that it lacks them', async () => {
    const { gateway, noted } = await start(false);
    const meta = { ...ASKABLE, [CLIENT_CAPABILITIES]: { elicitation: {} } };
    const { json } = await callTool(gateway, 'two__ask-both', undefined, { meta });
    expect(json.error).toMatchObject({ code: -32021, message: expect.stringContaining('roots') });
    expect(noted()).toEqual([]);
  });

  test('§18.3 a program (stdio) is told of in the same words', async () => {
    const command = { command: process.execPath, args: [PROGRAM] };
    const { gateway, noted } = await start(false, { program: command });
    const client = await openClient(gateway, { capabilities: ABLE });
    const { result } = await lastOf(await client.call('program__folders'));
    expect(result.content[0].text).toMatch(NOT_TOLD);
    expect(noted()).toMatchObject([{ level: 'warn', server: 'program' }]);
  });
});

test('§18.3 with it they are told', async () => {
  const { gateway } = await start(true);
  const client = await openClient(gateway, { capabilities: ABLE });
  expect(heardIn(await client.ask('tools/call', { name: 'one__declared' }))).toMatchObject(ABLE);
});

test('§18.3 a server that asks for roots all the same gets an error; the log says what to do, once', async () => {
  const { gateway, noted } = await start(false);
  for (let call = 0; call < 2; call += 1) {
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.call('one__roots');
    const heard = heardIn(await lastOf(stream));
    const refused = { code: -32601, message: expect.stringContaining('"roots": true') };
    expect(heard).toMatchObject(refused);
    expect(saidIn(await askingCall(gateway, 'one__roots'))).toMatchObject(refused);
  }
  expect(noted()).toMatchObject([{ level: 'warn', server: 'one' }]);
});

test('§18.3 a stateless server that asks for roots all the same: the model reads why not', async () => {
  const result = {
    resultType: 'input_required',
    inputRequests: { folders: { method: 'roots/list', params: {} } },
  };
  const raw = closeAfterTest(await startRawServer((res, id) => sendJson(res, { id, result })));
  const { gateway, noted } = await start(false, { raw: raw.url });
  const client = await openClient(gateway, { capabilities: ABLE });
  const { result: told } = await client.ask('tools/call', { name: 'raw__any' });
  expect(told.isError).toBe(true);
  expect(told.content[0].text).toMatch(/^raw needs roots for this call\. .*"roots": true for raw/);
  expect(noted()).toHaveLength(1);
});
