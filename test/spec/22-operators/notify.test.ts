// §22.7: operators are told through a webhook of what needs them.
import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { createLock } from '../../../src/lock/lock.ts';
import { EMPTY_LOCK_FILE } from '../../../src/lock/lock-file.ts';
import { rulesThatAsk, WRITE } from '../../support/approvals/asking-gateway.ts';
import { startFilesServer } from '../../support/approvals/files-server.ts';
import { createOperator, OPERATED, PROGRAMS } from '../../support/approvals/operators.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { listenOnLoopback } from '../../support/upstreams/listen.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

const SECRET = `whsec_${Buffer.from('a key of twenty-four byte').toString('base64')}`;

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every shape
  readonly json: any;
}

/** Answers with these, one after the other, and then with 200. */
async function startWebhook(...answers: readonly number[]) {
  const received: Received[] = [];
  const { url } = closeAfterTest(
    await listenOnLoopback(async (req, res) => {
      const body = await text(req);
      received.push({ headers: req.headers, body, json: JSON.parse(body) });
      res.writeHead(answers[received.length - 1] ?? 200).end();
    }),
  );
  return { url, received };
}

async function startAsking(notify: object, options: object = {}) {
  const files = closeAfterTest(await startFilesServer());
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { files: { url: files.url } },
      file: { rules: rulesThatAsk('operator'), clients: PROGRAMS, notify },
      env: { ...OPERATED, APPROVAL_WAIT_SECONDS: '600' },
      ...options,
    }),
  );
  return { gateway, operator: await createOperator(gateway) };
}

test('§22.7 approvals: a call that waits is told once by two replicas, signed, and without its arguments', async () => {
  const { url, received } = await startWebhook();
  const notify = { url, secret: SECRET, on: ['approvals'] };
  const { gateway, operator } = await startAsking(notify, { replicas: 2 });
  const waiting = [0, 1].map(async (replica) => {
    const user = await gateway.logIn('ada', replica);
    return user.call(WRITE, { path: '/tmp/hidden', content: String(replica) });
  });
  await expect.poll(async () => (await operator.list()).length).toBe(2);
  await expect.poll(() => received.length).toBe(1);
  const [{ headers, body, json } = failToFind()] = received;
  expect(json).toMatchObject({
    type: 'approval.asked',
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
    data: { tool: WRITE, server: 'files', user: 'ada' },
    text: expect.stringContaining(`asks to call write_file of files. Approve or refuse it`),
  });
  expect(json.text).toContain(`${gateway.baseUrl}/admin`);
  expect(body).not.toContain('/tmp/hidden');
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = headers;
  const key = Buffer.from(SECRET.slice(6), 'base64');
  const expected = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64');
  expect(signature).toBe(`v1,${expected}`);
  for (const { id: one } of await operator.list()) await operator.decide(one, 'refuse');
  await Promise.all(waiting);
  expect(received).toHaveLength(1);
});

const failToFind = (): never => {
  throw new Error('nothing was received');
};

test('§22.7 servers: one that is down is told, and again only after a minute', async () => {
  const { url, received } = await startWebhook();
  const clock = manualClock(1_800_000_000_000);
  const server = await serveForTest({ tools: [buildTool('read')] });
  const other = await serveForTest({ tools: [buildTool('read')] });
  const mcpServers = { files: server.url, other: other.url };
  const gateway = await startForTest({ file: { mcpServers, notify: { url } }, clock });
  expect(await gateway.listNames('tools/list')).toHaveLength(2);
  await server.close();
  const session = await gateway.open();
  const call = (name: string) => gateway.call(session, 'tools/call', { name, arguments: {} });
  await call('files__read');
  await expect.poll(() => received.length).toBe(1);
  expect(received[0]?.json).toMatchObject({
    type: 'server.down',
    data: { server: 'files' },
    text: expect.stringContaining('The MCP server files is not available'),
  });
  expect(received[0]?.headers['webhook-signature']).toBeUndefined();
  // About another subject there is another one.
  await other.close();
  await call('other__read');
  await expect.poll(() => received.map(({ json }) => json.data.server)).toEqual(['files', 'other']);
});

test('§22.7 the lock: an entry that is not approved is told once, however often lists are read', async () => {
  const { url, received } = await startWebhook();
  const server = await serveForTest({ tools: [buildTool('read'), buildTool('write')] });
  const gateway = await startForTest({
    file: { mcpServers: { files: server.url }, notify: { url, on: ['lock'] } },
    lock: createLock(EMPTY_LOCK_FILE),
  });
  for (let n = 0; n < 3; n += 1) expect(await gateway.listNames('tools/list')).toEqual([]);
  await expect.poll(() => received.length).toBe(1);
  expect(received[0]?.json).toMatchObject({
    type: 'lock.differs',
    data: { server: 'files', kind: 'tool', verdict: 'new' },
    text: expect.stringContaining('is approved: '),
  });
});

test('§22.7 logins: a refused one is told, and a client’s name cannot become markup', async () => {
  const { url, received } = await startWebhook();
  const { gateway } = await startAsking({ url, on: ['logins'] });
  const refuse = (client: string) =>
    fetch(
      `${gateway.baseUrl}/oauth/authorize?client_id=${encodeURIComponent(client)}&response_type=code`,
    );
  await refuse('<!channel> & <https://evil.example|log in>');
  await expect.poll(() => received.length).toBe(1);
  const { type, text: shown } = received[0]?.json ?? {};
  expect(type).toBe('login.refused');
  expect(shown).toContain('refused');
  expect(shown).not.toMatch(/[<>]/);
  // Under however many names: no flood.
  for (let n = 0; n < 15; n += 1) await refuse(`client-${n}`);
  await expect.poll(() => received.length).toBe(10);
  await refuse('client-15');
  expect(received).toHaveLength(10);
});

test('§22.7 a webhook that fails gets the same message again, and the log says in the end what is wrong', async () => {
  const { url, received } = await startWebhook(500, 500, 500);
  const clock = manualClock(1_800_000_000_000);
  const server = await serveForTest({ tools: [buildTool('read')] });
  const file = { mcpServers: { files: server.url }, notify: { url } };
  const gateway = await startForTest({ file, clock });
  await gateway.listNames('tools/list');
  await server.close();
  await gateway.call(await gateway.open(), 'tools/call', { name: 'files__read', arguments: {} });
  await expect
    .poll(() => {
      clock.advance(60_000);
      return received.length;
    })
    .toBe(3);
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  const told = () => gateway.log.filter(({ msg }) => msg.includes('could not be sent'));
  await expect.poll(told).toHaveLength(1);
  expect(told()[0]?.msg).toContain(`${new URL(url).host} answered 500`);
});

test('§22.7 a new configuration file names another webhook, or none', async () => {
  const [first, second] = [await startWebhook(), await startWebhook()];
  const lock = createLock(EMPTY_LOCK_FILE);
  const listNew = async (name: string) => ({
    [name]: (await serveForTest({ tools: [buildTool('read')] })).url,
  });
  const gateway = await startForTest({
    file: { mcpServers: await listNew('one'), notify: { url: first.url } },
    lock,
  });
  for (const [name, notify] of [
    ['two', { notify: { url: second.url } }],
    ['three', {}],
    ['four', { notify: { url: first.url } }],
  ] as const) {
    await gateway.listNames('tools/list');
    await gateway.reload({ mcpServers: await listNew(name), ...notify }, lock);
  }
  await gateway.listNames('tools/list');
  const servers = ({ received }: typeof first) => received.map(({ json }) => json.data.server);
  await expect.poll(() => servers(first)).toEqual(['one', 'four']);
  await expect.poll(() => servers(second)).toEqual(['two']);
});
