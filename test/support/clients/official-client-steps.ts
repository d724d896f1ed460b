// What every official client does, in whatever era and over however many replicas.
import { expect } from 'vitest';
import { type ClientTestCatalog, TODAY, TOMORROW } from '../catalogs/client-test-catalog.ts';
import type { OfficialClient, OfficialClientRow } from './official-client.ts';

type Step = (
  client: OfficialClient,
  row: OfficialClientRow,
  own: ClientTestCatalog,
) => Promise<void>;

/** On a busy machine; nothing here asserts by the clock. */
const PATIENT = { timeout: 15_000 } as const;

const text = (words: string) => [{ type: 'text', text: words }];

export const CLIENT_STEPS: readonly (readonly [title: string, step: Step])[] = [
  [
    'negotiates its era',
    async ({ version, sessionId, sent }, row) => {
      expect(version).toBe(row.version);
      const uuid = expect.stringMatching(/^[0-9a-f-]{36}$/);
      expect(sessionId).toEqual(row.era === 'session' ? uuid : undefined);
      // The way that was not taken.
      const other = row.era === 'session' ? 'server/discover' : 'initialize';
      expect(sent.join()).not.toContain(other);
    },
  ],
  [
    'lists tools, prompts, resources and templates',
    async (client) => {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual([
        ...['add', 'count-up', 'book', 'summarize', 'report', 'who-am-i', 'wait'],
      ]);
      const { prompts } = await client.listPrompts();
      expect(prompts.map(({ name }) => name)).toEqual(['review']);
      const { resources } = await client.listResources();
      expect(resources.map(({ uri }) => uri)).toEqual([TODAY, TOMORROW]);
      const { resourceTemplates } = await client.listResourceTemplates();
      expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(['city://{name}']);
    },
  ],
  [
    'calls a tool as the user who logged in',
    async (client) => {
      const { content, isError } = await client.call('who-am-i');
      expect([content, isError]).toEqual([text('ada'), undefined]);
    },
  ],
  [
    'gets a structured result that fits the output schema',
    async (client) => {
      // The client holds results to the schemas that it was told.
      await client.listTools();
      const { content, structuredContent } = await client.call('add', { a: 2, b: 3 });
      expect([structuredContent, content]).toEqual([{ sum: 5 }, text('{"sum":5}')]);
    },
  ],
  [
    'gets a prompt',
    async (client) => {
      const { messages } = await client.getPrompt({
        name: 'review',
        arguments: { language: 'rust' },
      });
      const [content] = text('Review this rust code.');
      expect(messages).toEqual([{ role: 'user', content }]);
    },
  ],
  [
    'reads a resource and one of a template',
    async (client) => {
      for (const [uri, words] of [
        [TODAY, 'Sunny.'],
        ['city://oslo', 'This is oslo.'],
      ] as const) {
        const { contents } = await client.readResource({ uri });
        expect(contents).toEqual([{ uri, mimeType: 'text/plain', text: words }]);
      }
      await expect(client.readResource({ uri: 'city://nowhere' })).rejects.toMatchObject({
        code: -32602,
        data: { uri: 'city://nowhere' },
      });
    },
  ],
  [
    'completes arguments of a prompt and of a template',
    async (client) => {
      const language = await client.complete({
        ref: { type: 'ref/prompt', name: 'review' },
        argument: { name: 'language', value: 'java' },
      });
      expect(language.completion.values).toEqual(['javascript', 'java']);
      const city = await client.complete({
        ref: { type: 'ref/resource', uri: 'city://{name}' },
        argument: { name: 'name', value: 'ber' },
      });
      expect(city.completion.values).toEqual(['berlin', 'bern']);
    },
  ],
  [
    'sees progress',
    async (client) => {
      const seen: unknown[] = [];
      const onprogress = (progress: object) => void seen.push(progress);
      const { content } = await client.call('count-up', {}, { onprogress });
      expect(content).toEqual(text('Counted.'));
      expect(seen).toEqual(
        [1, 2, 3].map((progress) => ({ progress, total: 3, message: `${progress} of 3` })),
      );
    },
  ],
  [
    'answers a question to its user',
    async (client) => {
      const { content } = await client.call('book');
      expect(content).toEqual(text('A table for Grace'));
      // Of a server behind the gateway, its name comes first.
      expect(client.asked).toContainEqual(expect.stringMatching(/^(\w+ asks: )?For whom\?$/));
    },
  ],
  [
    'answers a question to its model',
    async (client) => {
      const { content } = await client.call('summarize');
      expect(content).toEqual(text('test-model says {"type":"text","text":"In short."}'));
      expect(client.asked).toContainEqual(expect.stringContaining('Sum it up.'));
    },
  ],
  [
    'gets the log messages that it asked for',
    async (client) => {
      const { content } = await client.callWithLog('report', 'warning');
      expect(content).toEqual(text('Reported.'));
      expect(client.logged).toEqual([
        { level: 'warning', logger: 'reports', data: 'It is getting late.' },
      ]);
    },
  ],
  [
    'is told of wrong input by a result that its model reads',
    async (client) => {
      const { content, isError } = await client.call('add', { a: 'two' });
      expect(isError).toBe(true);
      expect(JSON.stringify(content)).toContain('arguments/a must be a number, not a string');
      expect(JSON.stringify(content)).toContain('arguments/b is missing; it must be a number');
    },
  ],
  [
    'cancels a call, and its tool hears of it',
    async (client, { title }, { waits }) => {
      const cancelled = new AbortController();
      const called = client.call('wait', { key: title }, { signal: cancelled.signal });
      const outcome = called.then(
        () => 'an answer',
        () => 'an end',
      );
      await expect.poll(() => waits.get(title), PATIENT).toBe('runs');
      cancelled.abort('No longer needed');
      expect(await outcome).toBe('an end');
      await expect.poll(() => waits.get(title), PATIENT).toBe('was aborted');
      // The client goes on.
      expect((await client.call('who-am-i')).content).toEqual(text('ada'));
    },
  ],
];
