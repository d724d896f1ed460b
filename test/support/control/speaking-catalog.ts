// A built-in catalogue whose every word is marked.

import {
  createLocalCatalog,
  definePrompt,
  defineResource,
  defineTool,
  elicit,
  ToolError,
} from '../../../src/index.ts';
import { SERVER_MARK } from '../guards/speaking-server.ts';

const INPUT = { type: 'object', properties: {}, additionalProperties: true } as const;
const FORM = { type: 'object', properties: { name: { type: 'string' } } } as const;
const say = (words: string) => ({
  content: [{ type: 'text' as const, text: `${SERVER_MARK} ${words}` }],
});
const described = { description: SERVER_MARK };

/** What clients sent goes to `heard`. */
export function createSpeakingCatalog(heard: string[]) {
  const hear = (sent: unknown) => void heard.push(JSON.stringify(sent));
  return createLocalCatalog({
    instructions: SERVER_MARK,
    logging: true,
    tools: [
      defineTool({
        name: 'own__say',
        ...described,
        inputSchema: INPUT,
        run(args) {
          hear(args);
          return say('said');
        },
      }),
      defineTool({
        name: 'own__fail',
        ...described,
        inputSchema: INPUT,
        run(args) {
          hear(args);
          throw new ToolError(SERVER_MARK);
        },
      }),
      defineTool({
        name: 'own__tell',
        ...described,
        inputSchema: INPUT,
        run(args, { log, progress }) {
          hear(args);
          log('error', SERVER_MARK);
          progress(1, 1, SERVER_MARK);
          return say('told');
        },
      }),
      defineTool({
        name: 'own__elicit',
        ...described,
        inputSchema: INPUT,
        async run(args, { ask }) {
          hear(args);
          await ask({ it: elicit(SERVER_MARK, FORM) });
          return say('asked');
        },
      }),
    ],
    prompts: [
      definePrompt({
        name: 'own__prompt',
        ...described,
        arguments: [{ name: 'a', description: SERVER_MARK, required: false }],
        get(args) {
          hear(args);
          return {
            messages: [{ role: 'user', content: { type: 'text', text: SERVER_MARK } }],
          };
        },
      }),
    ],
    resources: [
      defineResource({
        uri: 'own://r',
        name: 'r',
        ...described,
        mimeType: 'text/plain',
        read: () => ({ text: SERVER_MARK }),
      }),
    ],
  });
}
