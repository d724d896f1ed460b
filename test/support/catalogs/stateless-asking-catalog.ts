// Tools, a prompt and a resource that ask the client before they answer.
import { expect } from 'vitest';
import {
  type ContentResult,
  createLocalCatalog,
  definePrompt,
  defineResource,
  defineTool,
  elicit,
  listRoots,
  sample,
} from '../../../src/index.ts';
import { accepted } from '../clients/stateless.ts';
import type { TestResponse } from '../gateway/gateway.ts';

export const FORM = {
  type: 'object',
  properties: { name: { type: 'string', minLength: 2 }, age: { type: 'integer' } },
  required: ['name'],
  additionalProperties: false,
} as const;

export const SAMPLE = {
  messages: [{ role: 'user', content: { type: 'text', text: 'Capital of France?' } }],
  maxTokens: 10,
} as const;

const NO_INPUT = { type: 'object' } as const;

const said = (value: unknown): ContentResult => ({
  content: [{ type: 'text', text: JSON.stringify(value) }],
});

const asksOnce = (name: string) =>
  defineTool({
    name,
    description: 'Asks one question.',
    inputSchema: { type: 'object', properties: { topic: { type: 'string' } } },
    run: async (_args, { ask }) => said(await ask({ who: elicit('Who are you?', FORM) })),
  });

const several = defineTool({
  name: 'several',
  description: 'Asks three questions at once.',
  inputSchema: NO_INPUT,
  run: async (_args, { ask }) =>
    said(
      await ask({
        who: elicit('Who are you?', FORM),
        capital: sample(SAMPLE),
        folders: listRoots(),
      }),
    ),
});

const rounds = defineTool({
  name: 'rounds',
  description: 'Asks, and asks again about the answer.',
  inputSchema: NO_INPUT,
  async run(_args, { ask }) {
    const { who } = await ask({ who: elicit('Who are you?', FORM) });
    if (who.action !== 'accept') return said({ who });
    const { sure } = await ask({ sure: elicit(`Are you sure, ${who.content.name}?`, FORM) });
    return said({ who, sure });
  },
});

/** A key that every object has by birth is a key like another. */
const born = defineTool({
  name: 'born',
  description: 'Asks under keys of Object.prototype.',
  inputSchema: NO_INPUT,
  async run(_args, { ask }) {
    const first = await ask({ constructor: elicit('First?', FORM) });
    const second = await ask({ toString: elicit('Second?', FORM) });
    return said({ first: first.constructor, second: second.toString });
  },
});

const swallows = defineTool({
  name: 'swallows',
  description: 'Catches what ask() throws.',
  inputSchema: NO_INPUT,
  async run(_args, { ask }) {
    try {
      return said(await ask({ who: elicit('Who are you?', FORM) }));
    } catch {
      return said('swallowed');
    }
  },
});

const talks = defineTool({
  name: 'talks',
  description: 'Tells its progress before it asks.',
  inputSchema: NO_INPUT,
  async run(_args, { ask, progress }) {
    progress(1, 2);
    return said(await ask({ who: elicit('Who are you?', FORM) }));
  },
});

const askingPrompt = definePrompt({
  name: 'asks',
  description: 'Asks one question.',
  arguments: [],
  async get(_args, { ask }) {
    const text = JSON.stringify(await ask({ who: elicit('Who are you?', FORM) }));
    return { messages: [{ role: 'user', content: { type: 'text', text } }] };
  },
});

const askingResource = defineResource({
  uri: 'test://asks',
  name: 'asks',
  description: 'Asks one question.',
  mimeType: 'application/json',
  cache: { ttlMs: 1000, scope: 'public' },
  read: async ({ ask }) => ({
    text: JSON.stringify(await ask({ who: elicit('Who are you?', FORM) })),
  }),
});

export const askingCatalog = createLocalCatalog({
  tools: [asksOnce('once'), asksOnce('again'), several, rounds, born, swallows, talks],
  prompts: [askingPrompt],
  resources: [askingResource],
});

/** Answers of a client, and the question by the key `who`. */
export const ADA = accepted({ name: 'Ada' });
export const PARIS = { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'm' };
export const ROOTS = { roots: [{ uri: 'file:///home/ada' }] };
export const WHO = { method: 'elicitation/create', params: { requestedSchema: FORM } };

/** What is asked: an answer that is none fails the test. */
export function questionsIn({ status, json }: TestResponse): {
  inputRequests: object;
  requestState: string;
} {
  expect(status).toBe(200);
  expect(json.result?.resultType).toBe('input_required');
  return json.result;
}

/** What a tool answered with. */
export const saidIn = ({ json }: TestResponse): unknown => JSON.parse(json.result.content[0].text);
