// Tools whose results ask for input in 2026-07-28.
import { defineTool, elicit, listRoots, sample } from '../../../../src/index.ts';
import {
  CONFIRMATION,
  fieldOf,
  formText,
  modelText,
  NO_ARGUMENTS,
  rootsText,
  said,
  text,
} from './content.ts';

const name = (message: string) =>
  elicit(message, {
    type: 'object',
    properties: { name: { type: 'string' } },
    required: ['name'],
  });

const color = (message: string) =>
  elicit(message, {
    type: 'object',
    properties: { color: { type: 'string' } },
    required: ['color'],
  });

const completion = (words: string, maxTokens: number) =>
  sample({ messages: [{ role: 'user', content: text(words) }], maxTokens });

const elicitation = defineTool({
  name: 'test_input_required_result_elicitation',
  description: 'Asks the user for a name.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { ask }) {
    const { user_name } = await ask({ user_name: name('What is your name?') });
    return said(`Hello, ${fieldOf(user_name, 'name')}!`);
  },
});

const sampling = defineTool({
  name: 'test_input_required_result_sampling',
  description: "Asks the client's model for a capital.",
  inputSchema: NO_ARGUMENTS,
  async run(_args, { ask }) {
    const { capital_question } = await ask({
      capital_question: completion('What is the capital of France?', 100),
    });
    return said(modelText(capital_question));
  },
});

const roots = defineTool({
  name: 'test_input_required_result_list_roots',
  description: 'Asks the client for its roots.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { ask }) {
    const { client_roots } = await ask({ client_roots: listRoots() });
    return said(`Roots: ${rootsText(client_roots)}`);
  },
});

const requestState = defineTool({
  name: 'test_input_required_result_request_state',
  description: 'Asks for a confirmation; says whether its state came back.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { ask }) {
    const { confirm } = await ask({ confirm: elicit('Please confirm', CONFIRMATION) });
    return said(`state-ok: ${formText(confirm)}`);
  },
});

const multipleInputs = defineTool({
  name: 'test_input_required_result_multiple_inputs',
  description: 'Asks the user, the model and for the roots, all at once.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { ask }) {
    const { user_name, greeting, client_roots } = await ask({
      user_name: name('What is your name?'),
      greeting: completion('Generate a greeting', 50),
      client_roots: listRoots(),
    });
    return said(
      `${modelText(greeting)} ${fieldOf(user_name, 'name')}, with ${rootsText(client_roots)}`,
    );
  },
});

const multiRound = defineTool({
  name: 'test_input_required_result_multi_round',
  description: 'Asks the user twice, one after the other.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { ask }) {
    const { step1 } = await ask({ step1: name('Step 1: What is your name?') });
    const { step2 } = await ask({ step2: color('Step 2: What is your favorite color?') });
    return said(`${fieldOf(step1, 'name')} likes ${fieldOf(step2, 'color')}.`);
  },
});

const tamperedState = defineTool({
  name: 'test_input_required_result_tampered_state',
  description: 'Asks for a confirmation; a state that was changed on its way is refused.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { ask }) {
    const { confirm } = await ask({ confirm: elicit('Please confirm', CONFIRMATION) });
    return said(formText(confirm));
  },
});

const capabilities = defineTool({
  name: 'test_input_required_result_capabilities',
  description: 'Asks the user, or the model where the client cannot ask the user.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { ask, client }) {
    if (client.elicitation) {
      const { user_name } = await ask({ user_name: name('What is your name?') });
      return said(`Hello, ${fieldOf(user_name, 'name')}!`);
    }
    const { greeting } = await ask({ greeting: completion('Generate a greeting', 50) });
    return said(modelText(greeting));
  },
});

export const inputRequiredTools = [
  elicitation,
  sampling,
  roots,
  requestState,
  multipleInputs,
  multiRound,
  tamperedState,
  capabilities,
];
