// What clients hear of a name that nobody has: many show nothing but the message.
import { expect, test } from 'vitest';
import { createLocalCatalog, definePrompt } from '../../../src/index.ts';
import { startForTest as start } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest as serve } from '../../support/upstreams/listing-server.ts';

const serveTools = (...names: string[]) => serve({ tools: names.map((name) => buildTool(name)) });
const everyone = (...may: string[]) => ({ who: 'everyone', may });

type Gateway = Awaited<ReturnType<typeof start>>;

async function openCall(gateway: Gateway) {
  const session = await gateway.open();
  await gateway.list('tools/list', session);
  return async (name: string, method = 'tools/call') =>
    (await gateway.call(session, method, { name })).json.error;
}

test.each([
  ['files', 'read_file', 'Unknown tool: read_file. Did you mean files__read_file?'],
  ['files', 'files_read_file', 'Unknown tool: files_read_file. Did you mean files__read_file?'],
  ['files', 'files__readFile', 'Unknown tool: files__readFile. Did you mean files__read_file?'],
  ['files', 'filse__raed_file', 'Unknown tool: filse__raed_file. Did you mean files__read_file?'],
  ['files', 'send_mail', 'Unknown tool: send_mail.'],
  ['files', 'constructor', 'Unknown tool: constructor.'],
])(
  '§7.1 an unknown tool: %s is called as %s, and the message says what was meant',
  async (server, name, message) => {
    const { url } = await serveTools('read_file', 'delete_all');
    const gateway = await start({ file: { mcpServers: { [server]: url } } });
    const call = await openCall(gateway);
    expect(await call(name)).toMatchObject({
      code: -32602,
      message,
      data: { details: `Unknown tool "${name}"` },
    });
  },
);

test('§7.1 a tool that is listed, and refused for its arguments: nobody is told to call it by the name they used', async () => {
  const { url } = await serveTools('read_file');
  const rules = [{ ...everyone('*'), when: 'args.path == "a"' }];
  const gateway = await start({ file: { mcpServers: { files: url }, rules } });
  const call = await openCall(gateway);
  expect((await call('files__read_file')).message).toBe('Unknown tool: files__read_file.');
});

test('§7.1 an unknown prompt or resource: the message says so, too', async () => {
  const greeting = definePrompt({
    name: 'greeting',
    description: '',
    get: () => ({ messages: [] }),
  });
  const server = await serve({ prompts: [{ name: 'review' }] });
  const gateway = await start({
    file: { mcpServers: { a: server.url } },
    builtIn: createLocalCatalog({ prompts: [greeting] }),
  });
  const session = await gateway.open();
  await gateway.list('prompts/list', session);
  const say = async (method: string, params: object) =>
    (await gateway.call(session, method, params)).json.error.message;
  expect(await say('prompts/get', { name: 'greetings' })).toBe(
    'Unknown prompt: greetings. Did you mean greeting?',
  );
  expect(await say('prompts/get', { name: 'review' })).toBe(
    'Unknown prompt: review. Did you mean a__review?',
  );
  expect(await say('resources/read', { uri: 'x://user:secret@host/a?key=secret' })).toBe(
    'Unknown resource: x://host/a.',
  );
});

test('§7.1 an unknown tool at /mcp/<server>: the name that was meant is that server’s own', async () => {
  const { url } = await serveTools('read_file');
  const gateway = await start({ file: { mcpServers: { files: url } }, view: 'files' });
  const call = await openCall(gateway);
  expect((await call('files__read_file')).message).toBe(
    'Unknown tool: files__read_file. Did you mean read_file?',
  );
});

test('§18.5 an unknown tool: only what the caller may see is suggested, and what is denied is as unknown', async () => {
  const { url } = await serveTools('read_file', 'read_files');
  const file = { mcpServers: { a: url }, rules: [everyone('a__read_files')] };
  const gateway = await start({ file });
  const call = await openCall(gateway);
  for (const name of ['a__read_file', 'a__read_filx']) {
    expect((await call(name)).message).toBe(`Unknown tool: ${name}. Did you mean a__read_files?`);
  }
  await gateway.reload({ mcpServers: { a: url }, rules: [everyone('a__none')] });
  expect((await call('a__read_filx')).message).toBe('Unknown tool: a__read_filx.');
});

test('§18.5 an unknown tool: what only one user may see is suggested to nobody else', async () => {
  const { url } = await serveTools('read_file');
  const rules = [{ who: { groups: ['staff'] }, may: ['a__read_file'] }];
  const gateway = await start({ file: { mcpServers: { a: url }, rules } });
  const say = async (claims: Readonly<Record<string, unknown>>) => {
    const token = await gateway.issuer.sign(claims);
    const session = await gateway.open({ token });
    await gateway.list('tools/list', session, token);
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read_file' } };
    const { json } = await gateway.rpc(message, { session, token });
    return json.error.message;
  };
  const suggested = 'Unknown tool: read_file. Did you mean a__read_file?';
  expect(await say({ sub: 'ada', groups: ['staff'] })).toBe(suggested);
  expect(await say({ sub: 'bob', groups: ['guests'] })).toBe('Unknown tool: read_file.');
});

test('§7.1 an unknown tool: the message has only a piece of a long name, and nothing that cannot be seen', async () => {
  const { url } = await serveTools('read_file');
  const gateway = await start({ file: { mcpServers: { a: url } } });
  const call = await openCall(gateway);
  expect((await call('x'.repeat(100_000))).message).toBe(`Unknown tool: ${'x'.repeat(100)}….`);
  expect((await call('a\u202e\u0007\nb\u{e0041}')).message).toBe(
    'Unknown tool: a\\u202e\\u0007\\nb\\udb40\\udc41.',
  );
});

test('§7.1 an unknown tool: among 10,000 the nearest is found, and others are served meanwhile', async () => {
  const names = Array.from({ length: 9_999 }, (_, index) => `list_the_records_of_table_${index}`);
  const { url } = await serveTools(...names, 'read_file');
  const gateway = await start({ file: { mcpServers: { a: url } } });
  const call = await openCall(gateway);
  let answered = 0;
  const finding = call('list_the_record_of_tables_9998').then(({ message }) => {
    answered += 1;
    return message;
  });
  const health = await gateway.request({ method: 'GET', path: '/health' });
  expect([health.status, answered]).toEqual([200, 0]);
  expect(await finding).toBe(
    'Unknown tool: list_the_record_of_tables_9998. Did you mean a__list_the_records_of_table_9998?',
  );
});
