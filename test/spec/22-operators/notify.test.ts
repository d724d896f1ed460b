// §22.7: operators are told through a webhook of what needs them.
import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { createLock } from '../../../src/lock/lock.ts';
import { EMPTY_LOCK_FILE } from '../../../src/lock/lock-file.ts';
import { createMessage } from '../../../src/telemetry/notify/notify.ts';
import { rulesThatAsk, WRITE } from '../../support/approvals/asking-gateway.ts';
import { startFilesServer } from '../../support/approvals/files-server.ts';
import { createOperator, OPERATED, PROGRAMS } from '../../support/approvals/operators.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
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

async function startAsking(notify: object, options: object = {}, members: object = {}) {
  const files = closeAfterTest(await startFilesServer());
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { files: { url: files.url } },
      file: { rules: rulesThatAsk('operator'), clients: PROGRAMS, notify, ...members },
      env: { ...OPERATED, APPROVAL_WAIT_SECONDS: '600' },
      ...options,
    }),
  );
  return { gateway, operator: await createOperator(gateway) };
}

test('§22.7 approvals: a call that waits is told once, signed, and without its arguments', async () => {
  const { url, received } = await startWebhook();
  const notify = { url, secret: SECRET, on: ['approvals'] };
  const { gateway, operator } = await startAsking(notify, { replicas: 2 });
  const users = await Promise.all([0, 1].map((replica) => gateway.logIn('ada', replica)));
  const waiting = users.map((user) => user.call(WRITE, { path: '/tmp/hidden', content: 'x' }));
  await expect.poll(async () => (await operator.list()).length).toBe(2);
  await expect.poll(() => received.length).toBe(2);
  const [{ headers, body, json } = failToFind()] = received;
  expect(json).toMatchObject({
    type: 'approval.asked',
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
    data: { tool: WRITE, server: 'files', user: 'ada' },
    text: expect.stringContaining('asks to call write_file of files. Approve or refuse it'),
  });
  expect(json.text).toContain(`${gateway.baseUrl}/admin`);
  expect(body).not.toContain('/tmp/hidden');
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = headers;
  const key = Buffer.from(SECRET.slice(6), 'base64');
  const expected = createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64');
  expect(signature).toBe(`v1,${expected}`);
  // Called again, it is the same request.
  waiting.push(...users.map((user) => user.call(WRITE, { path: '/tmp/hidden', content: 'x' })));
  const open = await operator.list();
  expect(new Set(received.map((one) => one.json.data.id))).toEqual(
    new Set(open.map((one) => one.id)),
  );
  for (const { id: one } of open) await operator.decide(one, 'refuse');
  await Promise.all(waiting);
  expect(received).toHaveLength(2);
});

test('§22.7 approvals: what a guard decides is not told', async () => {
  const { url, received } = await startWebhook();
  const use = await writeGuard(`return { decision: 'pass' };`);
  const guards = [{ name: 'judge', on: ['approval'], use }];
  const { gateway } = await startAsking({ url }, {}, { guards });
  const user = await gateway.logIn('ada');
  expect((await user.call(WRITE, { path: '/tmp/a', content: 'x' })).text).toBe('written');
  expect(received).toEqual([]);
});

const failToFind = (): never => {
  throw new Error('nothing was received');
};

test('§22.7 servers: each that is down is told', async () => {
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

test('§22.7 the lock: what it hides of a server is told together, and once', async () => {
  const { url, received } = await startWebhook();
  const clock = manualClock(1_800_000_000_000);
  const server = await serveForTest({ tools: ['read', 'write'].map((name) => buildTool(name)) });
  const gateway = await startForTest({
    file: { mcpServers: { files: server.url }, notify: { url, on: ['lock'] } },
    lock: createLock(EMPTY_LOCK_FILE),
    clock,
  });
  for (let n = 0; n < 3; n += 1) {
    expect(await gateway.listNames('tools/list')).toEqual([]);
    clock.advance(5000);
  }
  await expect.poll(() => received.length).toBe(1);
  const { type, text: shown, data } = received[0]?.json ?? {};
  expect([type, data]).toEqual(['lock.differs', { server: 'files', entries: 2 }]);
  expect(shown).toContain('new tool read, new tool write');
  await gateway.listNames('tools/list');
  clock.advance(5000);
  expect(received).toHaveLength(1);
});

test('§22.7 logins: refused ones are told once, however many names a stranger makes up, and without these', async () => {
  const { url, received } = await startWebhook();
  const { gateway } = await startAsking({ url });
  for (let n = 0; n < 5; n += 1) {
    const client = encodeURIComponent(`<!channel>\n@all https://evil.example/${n}`);
    await fetch(`${gateway.baseUrl}/oauth/authorize?client_id=${client}&response_type=code`);
  }
  await expect.poll(() => received.length).toBe(1);
  const { type, text: shown } = received[0]?.json ?? {};
  expect([type, shown]).toEqual(['login.refused', expect.stringMatching(/^Logins are refused \(/)]);
  expect(received[0]?.body).not.toMatch(/channel|evil/);
});

test('§22.7 names that others chose become no link, no mention, no markup and no line of their own', () => {
  const named =
    'Ada\n@channel @all <!here> <https://evil.example|log in> http://evil.example www.evil.example asks';
  const link = 'https://gateway.example/admin';
  const { body } = createMessage({ type: 'test', text: named, link, data: {} }, 0);
  const { text: shown } = JSON.parse(body);
  expect(shown).toMatch(/ https:\/\/gateway\.example\/admin$/);
  const words = shown.slice(0, -link.length);
  expect(words).not.toMatch(/[\n<>@]|:\/\/|www\./);
  expect(words).toContain('log in');
});

/** `told`: what the log says of notifications that could not be sent. */
async function startWithDownServer(url: string) {
  const clock = manualClock(1_800_000_000_000);
  const server = await serveForTest({ tools: [buildTool('read')] });
  const file = { mcpServers: { files: server.url }, notify: { url } };
  const gateway = await startForTest({ file, clock });
  await gateway.listNames('tools/list');
  await server.close();
  await gateway.call(await gateway.open(), 'tools/call', { name: 'files__read', arguments: {} });
  const told = () => gateway.log.filter(({ msg }) => msg.includes('could not be sent'));
  return { gateway, clock, told };
}

test('§22.7 a webhook that fails gets the same message again, and the log says in the end what is wrong', async () => {
  const { url, received } = await startWebhook(500, 500, 500);
  const { clock, told } = await startWithDownServer(url);
  await expect
    .poll(() => {
      clock.advance(60_000);
      return received.length;
    })
    .toBe(3);
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  await expect.poll(told).toHaveLength(1);
  expect(told()[0]?.msg).toContain('the webhook answered 500');
});

test('§22.7 a webhook that cannot be reached: the log says why, without its address, which is a secret', async () => {
  const { url, close } = await listenOnLoopback(() => {}, 0, '/services/T0/SECRET');
  await close();
  const { gateway, clock, told } = await startWithDownServer(url);
  await expect
    .poll(() => {
      clock.advance(60_000);
      return told().length;
    })
    .toBe(1);
  expect(told()[0]?.msg).toContain('ECONNREFUSED');
  expect(JSON.stringify(gateway.log)).not.toContain('SECRET');
});

test('§22.7 a new configuration file names another webhook, or none', async () => {
  const [first, second] = [await startWebhook(), await startWebhook()];
  const lock = createLock(EMPTY_LOCK_FILE);
  const listNew = async (name: string) => ({
    [name]: (await serveForTest({ tools: [buildTool('read')] })).url,
  });
  const clock = manualClock(1_800_000_000_000);
  const gateway = await startForTest({
    file: { mcpServers: await listNew('one'), notify: { url: first.url } },
    lock,
    clock,
  });
  const list = async () => {
    await gateway.listNames('tools/list');
    clock.advance(5000);
  };
  const servers = ({ received }: typeof first) => received.map(({ json }) => json.data.server);
  await list();
  await expect.poll(() => servers(first)).toEqual(['one']);
  await gateway.reload({ mcpServers: await listNew('two'), notify: { url: second.url } }, lock);
  await list();
  await expect.poll(() => servers(second)).toEqual(['two']);
  await gateway.reload({ mcpServers: await listNew('three') }, lock);
  await list();
  await gateway.reload({ mcpServers: await listNew('four'), notify: { url: first.url } }, lock);
  await list();
  await expect.poll(() => servers(first)).toEqual(['one', 'four']);
  expect(servers(second)).toEqual(['two']);
});
