// Tools whose calls go on as tasks.
import { setTimeout as pause } from 'node:timers/promises';
import { defineTool, elicit, fail } from '../../../../src/index.ts';
import { fieldOf, formText, NO_ARGUMENTS, said, text } from './content.ts';

const CONFIRM = {
  type: 'object',
  properties: { confirm: { type: 'boolean' } },
  required: ['confirm'],
} as const;

const NAME = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const;

const greet = defineTool({
  name: 'greet',
  description: 'Greets at once.',
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string' } },
    required: ['name'],
    additionalProperties: false,
  },
  run: ({ name }) => said(`Hello, ${name}!`),
});

const slowCompute = defineTool({
  name: 'slow_compute',
  description: 'Takes so many seconds.',
  inputSchema: {
    type: 'object',
    properties: { seconds: { type: 'number' }, label: { type: 'string' } },
    required: ['seconds'],
    additionalProperties: false,
  },
  task: 'optional',
  async run({ seconds, label = 'nothing' }, { signal }) {
    await pause(seconds * 1000, undefined, { signal });
    return said(`Computed ${label} in ${seconds} s.`);
  },
});

const failingJob = defineTool({
  name: 'failing_job',
  description: 'Says that it failed.',
  inputSchema: NO_ARGUMENTS,
  task: true,
  run: () => ({ content: [text('The job failed.')], isError: true }),
});

const protocolErrorJob = defineTool({
  name: 'protocol_error_job',
  description: 'Ends with an error of the protocol.',
  inputSchema: NO_ARGUMENTS,
  task: 'optional',
  run: () => fail('upstream_error', { jsonRpc: { code: -32603, message: 'Internal error' } }),
});

const confirmDelete = defineTool({
  name: 'confirm_delete',
  description: 'Asks before it would delete a file.',
  inputSchema: {
    type: 'object',
    properties: { filename: { type: 'string' } },
    required: ['filename'],
    additionalProperties: false,
  },
  task: 'optional',
  async run({ filename }, { ask }) {
    const { confirmation } = await ask({
      confirmation: elicit(`Delete ${filename}?`, CONFIRM),
    });
    return said(`${filename}: ${formText(confirmation)}`);
  },
});

const multiInput = defineTool({
  name: 'multi_input',
  description: 'Asks two things at once.',
  inputSchema: NO_ARGUMENTS,
  task: 'optional',
  async run(_args, { ask }) {
    const { person, consent } = await ask({
      person: elicit('Who are you?', NAME),
      consent: elicit('Do you agree?', CONFIRM),
    });
    return said(`${formText(person)}; ${formText(consent)}`);
  },
});

const withTask = defineTool({
  name: 'test_tool_with_task',
  description: 'Asks before its task begins.',
  inputSchema: NO_ARGUMENTS,
  task: true,
  async prepare(_args, { ask }) {
    const { user_name } = await ask({ user_name: elicit('What is your name?', NAME) });
    return fieldOf(user_name, 'name');
  },
  run: (_args, _context, name) => said(`Hello, ${name}!`),
});

export const taskTools = [
  greet,
  slowCompute,
  failingJob,
  protocolErrorJob,
  confirmDelete,
  multiInput,
  withTask,
];
