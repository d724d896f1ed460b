// §26: what clients are asked while a call goes on, and what they answer: of servers of both eras, and of an author's tool.
import { describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool, elicit } from '../../../src/index.ts';
import { lastOf, openClient } from '../../support/clients/session-client.ts';
import { askingCall } from '../../support/clients/stateless.ts';
import { writeGuard } from '../../support/guards/module-guard.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { questionsIn, retry } from '../../support/upstreams/relay-retry.ts';
import { startRelayServer1 } from '../../support/upstreams/relay-server-1.ts';
import { startRelayServer2 } from '../../support/upstreams/relay-server-2.ts';

const ABLE = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
const ADA = { action: 'accept', content: { name: 'Ada' } };

const one = useShared(startRelayServer1);
const two = useShared(startRelayServer2);

const builtIn = createLocalCatalog({
  tools: [
    defineTool({
      name: 'own',
      description: 'Asks who it is.',
      inputSchema: { type: 'object', properties: {} },
      async run(_args, { ask }) {
        const { who } = await ask({
          who: elicit('Who?', { type: 'object', properties: { name: { type: 'string' } } }),
        });
        return { content: [{ type: 'text', text: JSON.stringify(who) }] };
      },
    }),
  ],
});

const start = (guards: readonly object[]) =>
  startForTest({ file: { mcpServers: { one: one.url, two: two.url }, guards }, builtIn });

const TOOLS = ['one__ask', 'two__ask', 'own'] as const;

const CHANGE_QUESTION = `return { decision: 'change', value: { ...message.value, message: 'Changed question.' } };`;
const CHANGE_ANSWER = `return { decision: 'change', value: { action: 'accept', content: { name: 'Grace' } } };`;
const REFUSE = "return { decision: 'refuse', message: 'Nobody may ask this.' };";

const guard = async (on: string, body: string) => [
  { name: 'g', on: [on], use: await writeGuard(body) },
];

describe.each(TOOLS)('%s', (tool) => {
  test('§26 session era: a question is changed before anybody is asked', async () => {
    const gateway = await start(await guard('elicitation', CHANGE_QUESTION));
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.call(tool);
    const asked = await stream.next();
    expect(asked.params.message).toContain('Changed question.');
    await client.answer(asked.id, ADA);
    expect(JSON.stringify(await lastOf(stream))).toContain('Ada');
  });

  test('§26 session era: an answer is changed before anybody hears of it', async () => {
    const gateway = await start(await guard('elicitation/result', CHANGE_ANSWER));
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.call(tool);
    const { id } = await stream.next();
    await client.answer(id, ADA);
    const said = JSON.stringify(await lastOf(stream));
    expect(said).toContain('Grace');
    expect(said).not.toContain('Ada');
  });

  test('§26 session era: a question that is refused reaches nobody', async () => {
    const gateway = await start(await guard('elicitation', REFUSE));
    const client = await openClient(gateway, { capabilities: ABLE });
    const { result } = await lastOf(await client.call(tool));
    expect(JSON.stringify(result)).toContain('Nobody may ask this.');
  });

  test('§26 session era: an answer that is refused does not reach who asked', async () => {
    const gateway = await start(await guard('elicitation/result', REFUSE));
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.call(tool);
    const { id } = await stream.next();
    await client.answer(id, ADA);
    const said = JSON.stringify(await lastOf(stream));
    expect(said).not.toContain('Ada');
    expect(said).toContain('Nobody may ask this.');
  });

  test('§26 stateless era: a question is changed before anybody is asked', async () => {
    const gateway = await start(await guard('elicitation', CHANGE_QUESTION));
    const asked = await askingCall(gateway, tool);
    expect(JSON.stringify(questionsIn(asked).inputRequests)).toContain('Changed question.');
    expect((await retry(gateway, tool, asked, ADA)).text).toContain('Ada');
  });

  test('§26 stateless era: an answer is changed before anybody hears of it', async () => {
    const gateway = await start(await guard('elicitation/result', CHANGE_ANSWER));
    const asked = await askingCall(gateway, tool);
    const { text } = await retry(gateway, tool, asked, ADA);
    expect(text).toContain('Grace');
    expect(text).not.toContain('Ada');
  });

  test('§26 stateless era: a question that is refused reaches nobody', async () => {
    const gateway = await start(await guard('elicitation', REFUSE));
    const { json } = await askingCall(gateway, tool);
    expect(json.result.resultType).toBe('complete');
    expect(JSON.stringify(json)).toContain('Nobody may ask this.');
  });

  test('§26 stateless era: an answer that is refused does not reach who asked', async () => {
    const gateway = await start(await guard('elicitation/result', REFUSE));
    const asked = await askingCall(gateway, tool);
    const { text } = await retry(gateway, tool, asked, ADA);
    expect(text).not.toContain('Ada');
    expect(text).toContain('Nobody may ask this.');
  });
});

test.each([[['Ada']], ['Ada'], [null]])(
  '§26 %j is no answer to a question: no guard can look at it, and no server gets it',
  async (answer) => {
    const gateway = await start(await guard('elicitation/result', REFUSE));
    const asked = await askingCall(gateway, 'two__ask');
    expect((await retry(gateway, 'two__ask', asked, answer)).json.error.code).toBe(-32602);
  },
);

test.each([
  { title: 'that is none', answer: null },
  { title: 'that a guard refuses', answer: { action: 'decline' } },
])(
  '§26 an answer $title was not passed on: one that is right may follow it',
  async ({ answer }) => {
    const refuse = "return { decision: message.value.action === 'decline' ? 'refuse' : 'pass' };";
    const gateway = await start(await guard('elicitation/result', refuse));
    const asked = await askingCall(gateway, 'two__ask');
    expect((await retry(gateway, 'two__ask', asked, answer)).text).not.toContain('Ada');
    expect((await retry(gateway, 'two__ask', asked, ADA)).text).toContain('Ada');
    expect((await retry(gateway, 'two__ask', asked, ADA)).text).toContain('count only once');
  },
);

test.each([{ on: ['roots/result'] }, { on: ['elicitation/result'], servers: ['two'] }])(
  '§26 an error at whose question no guard looks goes on as its client wrote it (%j)',
  async (about) => {
    const gateway = await start([{ name: 'g', use: await writeGuard(REFUSE), ...about }]);
    const client = await openClient(gateway, { capabilities: ABLE });
    const stream = await client.call('one__ask');
    const { id } = await stream.next();
    await client.send({ jsonrpc: '2.0', id, error: { code: -1, message: 'It is Ada.' } });
    expect(JSON.stringify(await lastOf(stream))).toContain('It is Ada.');
  },
);

test('§26 no guard looks at an error that a client answers with: only its code goes on', async () => {
  const gateway = await start(await guard('elicitation/result', REFUSE));
  const client = await openClient(gateway, { capabilities: ABLE });
  const stream = await client.call('one__ask');
  const { id } = await stream.next();
  const error = { code: -1, message: 'It is Ada.', data: { name: 'Ada' } };
  await client.send({ jsonrpc: '2.0', id, error });
  const said = JSON.stringify(await lastOf(stream));
  expect(said).not.toContain('Ada');
  expect(said).toContain('-1');
});

test('§26 an answer by the wrong name is looked at all the same', async () => {
  const gateway = await start(await guard('elicitation/result', REFUSE));
  const asked = await askingCall(gateway, 'two__ask');
  const disguised = { roots: [], ...ADA };
  const { text } = await retry(gateway, 'two__ask', asked, disguised);
  expect(text).not.toContain('Ada');
});

test('§26 notifications keep their order, change, and come before the answer', async () => {
  const use = await writeGuard(`
    const { method, params } = message.value;
    const wait = params.progress === 1 ? 30 : 0;
    return new Promise((resolve) => setTimeout(() => resolve(
      method === 'notifications/progress'
        ? { decision: 'change', value: { method, params: { ...params, message: 'seen' } } }
        : { decision: 'refuse' }), wait));`);
  const gateway = await start([{ name: 'slow', on: ['notifications'], use }]);
  const client = await openClient(gateway, {});
  const messages = await (await client.call('one__tell', {}, { progressToken: 'p' })).rest();
  expect(messages.map(({ params, result }) => params?.progress ?? result.content[0].text)).toEqual([
    1,
    2,
    '"told"',
  ]);
  expect(messages[0].params.message).toBe('seen');
});
