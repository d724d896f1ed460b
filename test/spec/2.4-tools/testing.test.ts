// postern/testing: what authors of tools call them with in their own tests.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import {
  createLocalCatalog,
  definePrompt,
  defineResource,
  defineResourceTemplate,
  defineTool,
  elicit,
  listRoots,
  sample,
} from 'postern/define';
import { CallError, type ConnectOptions, connect, type TestClient } from 'postern/testing';
import { afterEach, expect, test } from 'vitest';

const NO_ARGUMENTS = { type: 'object', properties: {} } as const;
const say = (value: unknown) => ({
  content: [{ type: 'text' as const, text: JSON.stringify(value) ?? 'undefined' }],
});

const whoAmI = defineTool({
  name: 'who_am_i',
  description: 'Says who calls.',
  inputSchema: NO_ARGUMENTS,
  run(_, { user }) {
    if (user === undefined) return say(undefined);
    const { sub, name, email, emailVerified, groups, claims } = user;
    return say({ sub, name, email, emailVerified, groups, team: claims.team });
  },
});
const regional = defineTool({
  name: 'regional',
  description: 'Has an argument that is repeated in a header.',
  inputSchema: {
    type: 'object',
    properties: { region: { type: 'string', 'x-mcp-header': 'Region' } },
    required: ['region'],
  },
  run: ({ region }) => say(region),
});
const askAll = defineTool({
  name: 'ask_all',
  description: 'Asks whatever the client can be asked.',
  inputSchema: NO_ARGUMENTS,
  async run(_, { ask, client, progress }) {
    progress(1, 2);
    const form = { type: 'object', properties: { colour: { type: 'string' } } } as const;
    const { form: first } = client.elicitation
      ? await ask({ form: elicit('Which colour?', form) })
      : { form: 'cannot be asked' };
    const others =
      client.sampling && client.roots
        ? await ask({
            poem: sample({
              messages: [{ role: 'user', content: { type: 'text', text: 'A poem' } }],
              maxTokens: 9,
            }),
            roots: listRoots(),
          })
        : {};
    return say({ first, ...others });
  },
});
const catalog = createLocalCatalog({
  tools: [whoAmI, regional, askAll],
  prompts: [
    definePrompt({
      name: 'greet',
      description: 'Greets.',
      arguments: [{ name: 'whom', description: 'Who is greeted.', required: true }],
      get: ({ whom }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Greet ${whom}` } }],
      }),
    }),
  ],
  resources: [
    defineResource({
      uri: 'note://größe',
      name: 'size',
      description: 'A size.',
      mimeType: 'text/plain',
      read: () => ({ text: 'large' }),
    }),
  ],
  resourceTemplates: [
    defineResourceTemplate({
      uriTemplate: 'note://{id}',
      name: 'note',
      description: 'A note.',
      read: ({ id }) => ({ text: id }),
    }),
  ],
});

const clients: TestClient[] = [];
afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())));

async function open(options?: ConnectOptions): Promise<TestClient> {
  const client = await connect(catalog, options);
  clients.push(client);
  return client;
}

const textOf = async (client: TestClient, tool: string, args?: object) => {
  const { content } = await client.callTool(tool, { ...args });
  return content.map((block) => (block.type === 'text' ? block.text : block.type)).join();
};

test('§2.4 testing: the user of one client is not that of another, and nobody is nobody', async () => {
  const [ada, bob, nobody] = await Promise.all([
    open({
      user: {
        sub: 'ada',
        name: 'Ada',
        email: 'ada@example.com',
        emailVerified: true,
        groups: ['operators'],
        claims: { team: 'blue' },
      },
    }),
    open({ user: {} }),
    open(),
  ]);
  expect(JSON.parse(await textOf(ada, 'who_am_i'))).toEqual({
    sub: 'ada',
    name: 'Ada',
    email: 'ada@example.com',
    emailVerified: true,
    groups: ['operators'],
    team: 'blue',
  });
  expect(JSON.parse(await textOf(bob, 'who_am_i'))).toEqual({ sub: 'test-user' });
  expect(await textOf(nobody, 'who_am_i')).toBe('undefined');
});

test('§2.4 testing: lists, prompts and resources', async () => {
  const client = await open();
  const names = (items: readonly { readonly name: string }[]) => items.map(({ name }) => name);
  expect({
    tools: names(await client.listTools()),
    prompts: names(await client.listPrompts()),
    resources: names(await client.listResources()),
    templates: names(await client.listResourceTemplates()),
  }).toEqual({
    tools: ['who_am_i', 'regional', 'ask_all'],
    prompts: ['greet'],
    resources: ['size'],
    templates: ['note'],
  });
  expect((await client.getPrompt('greet', { whom: 'Ada' })).messages).toEqual([
    { role: 'user', content: { type: 'text', text: 'Greet Ada' } },
  ]);
  const { contents } = await client.readResource('note://größe');
  expect(contents).toMatchObject([{ text: 'large' }]);
  expect((await client.readResource('note://7')).contents).toMatchObject([{ text: '7' }]);
});

test('§2.4 testing: an argument that is repeated in a header arrives', async () => {
  expect(await textOf(await open(), 'regional', { region: 'Österreich' })).toBe('"Österreich"');
});

test('§2.4 testing: what the gateway refuses is thrown, with what is wrong', async () => {
  const client = await open();
  const refused = client.callTool('missing');
  await expect(refused).rejects.toBeInstanceOf(CallError);
  await expect(refused).rejects.toMatchObject({ code: -32602 });
  const text = expect.stringContaining('arguments/region is missing');
  const result = { content: [{ type: 'text', text }], isError: true };
  expect(await client.callTool('regional')).toEqual(result);
});

test.each([[whoAmI], { tools: [whoAmI] }, undefined])(
  '§2.4 testing: what is no catalogue is refused, with what to pass',
  async (given) => {
    const pass = connect as (catalogue: unknown) => Promise<TestClient>;
    await expect(pass(given)).rejects.toThrow(/connect takes a catalogue: pass createLocalCatalog/);
  },
);

test('§2.4 testing: questions get the answers of the test, and only those that there are', async () => {
  const asked: string[] = [];
  const roots = { roots: [{ uri: 'file:///work' }] };
  const answered = await open({
    answer: {
      elicit: async ({ message }) => {
        asked.push(message);
        return { action: 'accept', content: { colour: 'green' } };
      },
      sample: ({ maxTokens }) => ({
        role: 'assistant',
        model: 'none',
        content: { type: 'text', text: `${maxTokens} tokens` },
      }),
      listRoots: () => roots,
    },
  });
  expect(JSON.parse(await textOf(answered, 'ask_all'))).toMatchObject({
    first: { action: 'accept', content: { colour: 'green' } },
    poem: { content: { text: '9 tokens' } },
    roots,
  });
  expect(asked).toEqual(['Which colour?']);
  expect(JSON.parse(await textOf(await open(), 'ask_all'))).toEqual({ first: 'cannot be asked' });
});

test('§2.4 testing: the example of the page passes under node --test', async () => {
  const example = fileURLToPath(new URL('../../../docs/examples/testing.ts', import.meta.url));
  const run = promisify(execFile)(process.execPath, ['--import', 'tsx', '--test', example]);
  expect((await run).stdout).toMatch(/^# pass 2$|ℹ pass 2/m);
});
