// The examples of docs/authors.md, sampling.md, tasks.md and skills.md: all of them in one gateway, called by the official client.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPlatformCatalog } from '../../../docs/examples/catalog.ts';
import { freeze } from '../../../docs/examples/watched-resource.ts';
import {
  renderAuthorsPage,
  renderSamplingPage,
  renderSkillsPage,
  renderTasksPage,
} from '../../../scripts/docs/examples.ts';
import { exampleAnswers, readPage } from '../../support/gateway/documentation-pages.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';
import { useShared } from '../../support/lifetimes.ts';
import { connectExampleClient, type ExampleClient } from './example-client.ts';

const RENDER = {
  authors: renderAuthorsPage,
  sampling: renderSamplingPage,
  tasks: renderTasksPage,
  skills: renderSkillsPage,
};
const pages = Object.keys(RENDER).map(readPage).join('\n');
const ERAS = ['session', 'stateless'] as const;
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

const traces: unknown[] = [];

/** Says who is on call. */
async function startRota() {
  const server = createServer((req, res) => {
    traces.push(req.headers.traceparent);
    res.end('Ada');
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  const close = () => new Promise((closed) => server.close(closed));
  return { url: `http://127.0.0.1:${port}`, close };
}

const rota = useShared(startRota);
const gateway = useGateway(() => ({
  deps: { catalog: createPlatformCatalog(rota.url) },
  env: { MCP_STREAMS: 'true' },
}));
let url: string;

beforeAll(async () => {
  url = `http://127.0.0.1:${await gateway.listen()}`;
});

test.each(Object.entries(RENDER))(
  '§2.4 examples: the page %s shows each as it lies in docs/examples',
  (name, render) => {
    const page = readPage(name);
    expect(render(page)).toBe(page);
  },
);

describe.each(ERAS)('in the %s era', (era) => {
  let ada: ExampleClient;
  let own: ExampleClient['client'];

  beforeAll(async () => {
    const token = await gateway.issuer.sign({ sub: 'ada', name: 'Ada' });
    ada = await connectExampleClient({ era, url, token, model: 'Payments are slow.' });
    own = ada.client;
  });
  afterAll(() => own.close());

  const asShown = (example: string, at = 0) => {
    const shown = exampleAnswers(pages, example)[at];
    if (typeof shown !== 'object' || shown === null) throw new Error(`No answer ${at}: ${example}`);
    return shown;
  };

  test.each([
    { example: 'tool.ts', name: 'deployed_version', args: { service: 'checkout' }, at: 0 },
    { example: 'tool.ts', name: 'deployed_version', args: { service: 'billing' }, at: 1 },
    { example: 'structured-output.ts', name: 'service_health', args: { service: 'search' }, at: 0 },
    { example: 'progress.ts', name: 'restart_service', args: { service: 'search' }, at: 0 },
    { example: 'log.ts', name: 'rotate_keys', args: {}, at: 0 },
    { example: 'ask.ts', name: 'delete_volume', args: { volume: 'pgdata' }, at: 1 },
    { example: 'sampling.ts', name: 'summarize_log', args: {}, at: 0 },
    { example: 'user.ts', name: 'approve_release', args: { release: '5.1' }, at: 1 },
    { example: 'other-service.ts', name: 'on_call', args: {}, at: 0 },
  ])('§2.4 examples: $example answers as its page says ($at)', async (row) => {
    const result = await own.callTool({ name: row.name, arguments: row.args });
    const shown = asShown(row.example, row.at);
    expect(result).toMatchObject(shown);
    expect('isError' in result).toBe('isError' in shown);
  });

  test('§2.4 examples: tool.ts is listed with its title, icon and annotations', async () => {
    const { tools } = await own.listTools();
    expect(tools.find(({ name }) => name === 'deployed_version')).toMatchObject({
      title: 'Deployed version',
      icons: [{ mimeType: 'image/png', sizes: ['48x48'] }],
      annotations: { readOnlyHint: true, openWorldHint: false },
    });
  });

  test('§2.4 examples: progress.ts tells how far it is', async () => {
    const seen: unknown[] = [];
    const args = { service: 'checkout', replicas: 2 };
    const onprogress = (progress: object) => void seen.push(progress);
    await own.callTool({ name: 'restart_service', arguments: args }, { onprogress });
    expect(seen).toEqual([
      { progress: 1, total: 2, message: 'checkout-1 is up again' },
      { progress: 2, total: 2, message: 'checkout-2 is up again' },
    ]);
  });

  test('§2.4 examples: progress.ts stops when it is cancelled', async () => {
    const cancelled = new AbortController();
    const called = own.callTool(
      { name: 'restart_service', arguments: { service: 'search', replicas: 100 } },
      { signal: cancelled.signal, onprogress: () => cancelled.abort('No longer needed') },
    );
    await expect(called).rejects.toThrow();
    const cancelledCalls = () =>
      gateway.log.filter(
        ({ of, error }) => of === 'restart_service' && error === 'request_cancelled',
      );
    await expect.poll(cancelledCalls).toMatchObject([{ level: 'info', msg: 'Refused.' }]);
    const { text } = await gateway.request({ path: '/metrics' });
    expect(text).not.toContain('tool="restart_service",status="exception"');
  });

  test('§2.4 examples: log.ts reaches a client from its level on', async () => {
    if (era === 'session') await own.setLoggingLevel('warning');
    const meta = { 'io.modelcontextprotocol/logLevel': 'warning' };
    const before = ada.logged.length;
    await own.callTool({
      name: 'rotate_keys',
      ...(era === 'stateless' && { _meta: meta }),
    });
    const data = { service: 'search', message: 'The key was 400 days old.' };
    expect(ada.logged.slice(before)).toEqual([{ level: 'warning', logger: 'keys', data }]);
  });

  test('§2.4 examples: ask.ts deletes what the user typed the name of, and nothing else', async () => {
    ada.answer('Delete pgdata for good?', { name: 'pgdata' });
    ada.answer('Delete mysql for good?', { name: 'pgdata' });
    const call = (volume: string) => own.callTool({ name: 'delete_volume', arguments: { volume } });
    expect(await call('pgdata')).toMatchObject(asShown('ask.ts'));
    expect((await call('mysql')).content).toEqual([
      { type: 'text', text: 'Kept mysql: you typed a different name.' },
    ]);
    ada.answer('Delete pgdata for good?', {});
    await expect(call('pgdata')).rejects.toMatchObject({ code: -32602 });
  });

  test.each([
    { level: 'high', now: true, at: 0, said: undefined },
    { level: 'high', now: false, at: undefined, said: 'Queued: Checkout is slow' },
    { level: 'low', now: true, at: undefined, said: 'Noted: Checkout is slow' },
  ])('§2.4 examples: ask-twice.ts asks again where it must ($level, $now)', async (row) => {
    ada.answer('What is broken?', { summary: 'Checkout is slow' });
    ada.answer('How bad is it?', { level: row.level });
    ada.answer('Wake up whoever is on call?', { now: row.now });
    const result = await own.callTool({ name: 'open_incident' });
    expect(result).toMatchObject(
      row.said === undefined
        ? asShown('ask-twice.ts')
        : { content: [{ type: 'text', text: row.said }] },
    );
  });

  test('§2.4 examples: a client that cannot be asked gets the other way', async () => {
    const token = await gateway.issuer.sign();
    const { client } = await connectExampleClient({ era, url, token });
    expect(await client.callTool({ name: 'summarize_log' })).toMatchObject(
      asShown('sampling.ts', 1),
    );
    const args = { volume: 'pgdata' };
    const kept = await client.callTool({ name: 'delete_volume', arguments: args });
    expect(kept).toMatchObject({ isError: true });
    await expect(client.callTool({ name: 'open_incident' })).rejects.toMatchObject({
      code: era === 'session' ? -32603 : -32021,
    });
    await client.close();
  });

  test('§2.3 examples: user.ts knows the groups of its caller', async () => {
    const claims = { sub: 'grace', name: 'Grace', groups: ['release-managers'] };
    const token = await gateway.issuer.sign(claims);
    const { client } = await connectExampleClient({ era, url, token });
    const args = { release: '5.1' };
    const result = await client.callTool({ name: 'approve_release', arguments: args });
    expect(result).toMatchObject(asShown('user.ts'));
    expect(result).not.toHaveProperty('isError');
    await client.close();
  });

  test('§2.4 examples: other-service.ts hands the trace on', async () => {
    await own.callTool({ name: 'on_call', _meta: { traceparent: TRACE } });
    expect(traces.at(-1)).toBe(TRACE);
  });

  test('§2.6 examples: prompt.ts answers and completes as its page says', async () => {
    const args = { service: 'search' };
    expect(await own.getPrompt({ name: 'investigate', arguments: args })).toMatchObject(
      asShown('prompt.ts'),
    );
    const ref = { type: 'ref/prompt', name: 'investigate' } as const;
    const argument = { name: 'service', value: 's' };
    expect(await own.complete({ ref, argument })).toMatchObject(asShown('prompt.ts', 1));
  });

  test.each([
    { example: 'resource.ts', uri: 'platform://regions' },
    { example: 'watched-resource.ts', uri: 'platform://freeze' },
    { example: 'resource-template.ts', uri: 'runbook://search' },
    { example: 'skill.ts', uri: 'skill://rollback/SKILL.md' },
  ])('§2.7 examples: $example is read as its page says', async ({ example, uri }) => {
    expect(await own.readResource({ uri })).toMatchObject(asShown(example));
  });

  test('§2.7 examples: resource-template.ts completes, and knows what it does not have', async () => {
    const ref = { type: 'ref/resource', uri: 'runbook://{service}' } as const;
    const { completion } = await own.complete({ ref, argument: { name: 'service', value: 'c' } });
    expect(completion.values).toEqual(['checkout']);
    await expect(own.readResource({ uri: 'runbook://nowhere' })).rejects.toMatchObject({
      code: -32602,
    });
  });

  test('§2.7 examples: watched-resource.ts tells its subscribers', async () => {
    const uri = 'platform://freeze';
    if (era === 'session') await own.subscribeResource({ uri });
    const subscription =
      era === 'stateless' ? await own.listen({ resourceSubscriptions: [uri] }) : undefined;
    // The client opens a session's stream by itself, when it likes.
    await expect
      .poll(() => {
        freeze(true);
        return ada.updated;
      })
      .toContain(uri);
    const { contents } = await own.readResource({ uri });
    expect(contents).toMatchObject([{ text: 'frozen' }]);
    freeze(false);
    await subscription?.close();
  });
});

test('§2.7 examples: the hint of resource.ts reaches clients of the stateless era', async () => {
  const token = await gateway.issuer.sign();
  const { client } = await connectExampleClient({ era: 'stateless', url, token });
  expect(await client.readResource({ uri: 'platform://regions' })).toMatchObject({
    ttlMs: 3_600_000,
    cacheScope: 'public',
  });
  expect(await client.readResource({ uri: 'platform://freeze' })).toMatchObject({
    ttlMs: 0,
    cacheScope: 'private',
  });
  await client.close();
});
