// §2.6: greeting.
import { definePrompt } from 'postern/define';

const greetings = {
  formal: (name: string) => `Write a formal greeting to ${name}, polite and reserved.`,
  casual: (name: string) => `Write a casual greeting to ${name}, short and relaxed.`,
  friendly: (name: string) => `Write a friendly greeting to ${name}, warm and welcoming.`,
  enthusiastic: (name: string) => `Write an enthusiastic greeting to ${name}, full of energy!`,
};

export const greeting = definePrompt({
  name: 'greeting',
  description: 'Greets somebody by name.',
  arguments: [
    { name: 'name', description: 'Whom to greet.', required: true },
    {
      name: 'style',
      description: 'formal, casual, friendly (the default) or enthusiastic.',
      required: false,
      values: ['formal', 'casual', 'friendly', 'enthusiastic'],
    },
  ],
  get({ name, style = 'friendly' }) {
    return {
      description: `A ${style} greeting`,
      messages: [{ role: 'user', content: { type: 'text', text: greetings[style](name) } }],
    };
  },
});
