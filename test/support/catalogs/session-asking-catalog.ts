// Tools, and a prompt, that ask the client of a session.
import { EventEmitter } from 'node:events';
import {
  type ClientRequest,
  createLocalCatalog,
  definePrompt,
  defineTool,
  elicit,
  listRoots,
  sample,
} from '../../../src/index.ts';

export const FORM = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer', minimum: 0 } },
  required: ['name'],
} as const;

export const SAMPLE = {
  messages: [{ role: 'user', content: { type: 'text', text: 'Say hello.' } }],
  maxTokens: 10,
} as const;

const QUESTIONS = {
  form: elicit('Who are you?', FORM),
  model: sample(SAMPLE),
  roots: listRoots(),
} as const satisfies Record<string, ClientRequest>;

/** What a client declares that can answer everything. */
export const ABLE = { elicitation: {}, sampling: {}, roots: { listChanged: true } };

export interface AskingCatalog {
  readonly catalog: ReturnType<typeof createLocalCatalog>;
  /** `aborted` when the signal of a question's call was; `refused` with why it was not answered. */
  readonly events: EventEmitter;
}

export function createAskingCatalog(): AskingCatalog {
  const events = new EventEmitter();
  const result = (value: unknown) => ({
    content: [{ type: 'text' as const, text: JSON.stringify(value) }],
  });

  const catalog = createLocalCatalog({
    logging: true,
    tools: [
      defineTool({
        name: 'asks',
        description: 'Answers with what the client answered.',
        inputSchema: {
          type: 'object',
          properties: { kinds: { type: 'array', items: { enum: ['form', 'model', 'roots'] } } },
          required: ['kinds'],
        },
        async run({ kinds }, { ask, signal }) {
          signal.addEventListener('abort', () => events.emit('aborted'));
          const asked = Object.fromEntries(kinds.map((kind) => [kind, QUESTIONS[kind]]));
          return ask(asked).then(result, (error: unknown) => {
            events.emit('refused', error);
            throw error;
          });
        },
      }),
      defineTool({
        name: 'asks-twice',
        description: 'Asks for a form, logs, asks for another, logs.',
        inputSchema: { type: 'object' },
        async run(_args, { ask, log }) {
          log('info', 'first');
          const { form: first } = await ask({ form: QUESTIONS.form });
          log('info', 'second');
          const { again: second } = await ask({ again: QUESTIONS.form });
          return result([first, second]);
        },
      }),
      defineTool({
        name: 'makes-do',
        description: 'Goes on without an answer.',
        inputSchema: { type: 'object' },
        run: (_args, { ask }) =>
          ask({ form: QUESTIONS.form }).then(result, () => result('without an answer')),
      }),
    ],
    prompts: [
      definePrompt({
        name: 'asks-roots',
        description: 'A prompt that needs the roots of the client.',
        arguments: [],
        async get(_args, { ask }) {
          const { roots } = await ask({ roots: QUESTIONS.roots });
          const text = roots.roots.map(({ uri }) => uri).join();
          return { messages: [{ role: 'user', content: { type: 'text', text } }] };
        },
      }),
    ],
  });
  return { catalog, events };
}
