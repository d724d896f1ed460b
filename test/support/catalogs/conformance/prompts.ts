import { definePrompt, elicit } from '../../../../src/index.ts';
import { fieldOf, image, text, user } from './content.ts';

const simple = definePrompt({
  name: 'test_simple_prompt',
  description: 'A prompt without arguments.',
  arguments: [],
  get: () => ({ messages: [user(text('This is a simple prompt for testing.'))] }),
});

const withArguments = definePrompt({
  name: 'test_prompt_with_arguments',
  description: 'A prompt with two arguments.',
  arguments: [
    {
      name: 'arg1',
      description: 'First test argument',
      required: true,
      complete: (typed) => ['test', 'testValue1'].filter((value) => value.startsWith(typed)),
    },
    { name: 'arg2', description: 'Second test argument', required: true },
  ],
  get: ({ arg1, arg2 }) => ({
    messages: [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
  }),
});

const withEmbeddedResource = definePrompt({
  name: 'test_prompt_with_embedded_resource',
  description: 'A prompt that carries a resource.',
  arguments: [{ name: 'resourceUri', description: 'URI of the resource', required: true }],
  get: ({ resourceUri }) => ({
    messages: [
      user({
        type: 'resource',
        resource: {
          uri: resourceUri,
          mimeType: 'text/plain',
          text: 'Embedded resource content for testing.',
        },
      }),
      user(text('Please process the embedded resource above.')),
    ],
  }),
});

const withImage = definePrompt({
  name: 'test_prompt_with_image',
  description: 'A prompt that carries an image.',
  arguments: [],
  get: () => ({ messages: [user(image), user(text('Please analyze the image above.'))] }),
});

const inputRequired = definePrompt({
  name: 'test_input_required_result_prompt',
  description: 'A prompt that asks the user for its context.',
  arguments: [],
  async get(_args, { ask }) {
    const { user_context } = await ask({
      user_context: elicit('What context should the prompt use?', {
        type: 'object',
        properties: { context: { type: 'string' } },
        required: ['context'],
      }),
    });
    return { messages: [user(text(`Use this context: ${fieldOf(user_context, 'context')}`))] };
  },
});

export const prompts = [simple, withArguments, withEmbeddedResource, withImage, inputRequired];
