// Tools that ask the client one question.
import { defineTool, elicit, sample } from '../../../../src/index.ts';
import { CONFIRMATION, formText, modelText, NO_ARGUMENTS, said, text } from './content.ts';

const sampling = defineTool({
  name: 'test_sampling',
  description: "Asks the client's model.",
  inputSchema: {
    type: 'object',
    properties: { prompt: { type: 'string', description: 'What to ask the model.' } },
    required: ['prompt'],
    additionalProperties: false,
  },
  async run({ prompt }, { ask }) {
    const { reply } = await ask({
      reply: sample({ messages: [{ role: 'user', content: text(prompt) }], maxTokens: 100 }),
    });
    return said(`LLM response: ${modelText(reply)}`);
  },
});

const elicitation = defineTool({
  name: 'test_elicitation',
  description: 'Asks the user who they are.',
  inputSchema: {
    type: 'object',
    properties: { message: { type: 'string', description: 'What to ask for.' } },
    required: ['message'],
    additionalProperties: false,
  },
  async run({ message }, { ask }) {
    const { person } = await ask({
      person: elicit(message, {
        type: 'object',
        properties: {
          username: { type: 'string', description: "User's response" },
          email: { type: 'string', description: "User's email address" },
        },
        required: ['username', 'email'],
      }),
    });
    return said(`User response: ${formText(person)}`);
  },
});

const defaults = defineTool({
  name: 'test_elicitation_sep1034_defaults',
  description: 'Asks by a form with a default for each type of field.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { ask }) {
    const { form } = await ask({
      form: elicit('Please look through these values.', {
        type: 'object',
        properties: {
          name: { type: 'string', default: 'John Doe' },
          age: { type: 'integer', default: 30 },
          score: { type: 'number', default: 95.5 },
          status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
          verified: { type: 'boolean', default: true },
        },
        required: [],
      }),
    });
    return said(`Elicitation completed: ${formText(form)}`);
  },
});

const enums = defineTool({
  name: 'test_elicitation_sep1330_enums',
  description: 'Asks by a form with each kind of choice.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { ask }) {
    const { form } = await ask({
      form: elicit('Please choose.', {
        type: 'object',
        properties: {
          untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
          titledSingle: {
            type: 'string',
            oneOf: [
              { const: 'value1', title: 'First Option' },
              { const: 'value2', title: 'Second Option' },
              { const: 'value3', title: 'Third Option' },
            ],
          },
          legacyEnum: {
            type: 'string',
            enum: ['opt1', 'opt2', 'opt3'],
            enumNames: ['Option One', 'Option Two', 'Option Three'],
          },
          untitledMulti: {
            type: 'array',
            items: { type: 'string', enum: ['option1', 'option2', 'option3'] },
          },
          titledMulti: {
            type: 'array',
            items: {
              anyOf: [
                { const: 'value1', title: 'First Choice' },
                { const: 'value2', title: 'Second Choice' },
                { const: 'value3', title: 'Third Choice' },
              ],
            },
          },
        },
        required: [],
      }),
    });
    return said(`Elicitation completed: ${formText(form)}`);
  },
});

const missingCapability = defineTool({
  name: 'test_missing_capability',
  description: "Cannot do without the client's model.",
  inputSchema: NO_ARGUMENTS,
  async run(_args, { ask }) {
    const { reply } = await ask({
      reply: sample({ messages: [{ role: 'user', content: text('Say hello.') }], maxTokens: 20 }),
    });
    return said(modelText(reply));
  },
});

const streamingElicitation = defineTool({
  name: 'test_streaming_elicitation',
  description: 'Asks the user for a confirmation.',
  inputSchema: NO_ARGUMENTS,
  async run(_args, { ask }) {
    const { confirmation } = await ask({
      confirmation: elicit('Please confirm', CONFIRMATION),
    });
    return said(formText(confirmation));
  },
});

export const askingTools = [
  sampling,
  elicitation,
  defaults,
  enums,
  missingCapability,
  streamingElicitation,
];
