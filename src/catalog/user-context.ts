// Spec §2.6: user-context.
import { definePrompt, requireUser, type UserContext } from 'postern/define';

const texts = {
  welcome: (user: string) => `Welcome ${user} and offer help with the tools at hand.`,
  status: (user: string) => `Tell ${user} as whom they are signed in and what they can use here.`,
  summary: (user: string) => `Summarise for ${user} what was done in this conversation so far.`,
};

export const userContext = definePrompt({
  name: 'user-context',
  description: 'Speaks to the signed-in user by name.',
  arguments: [
    {
      name: 'messageType',
      description: 'welcome (the default), status or summary.',
      required: false,
      values: ['welcome', 'status', 'summary'],
    },
  ],
  get({ messageType = 'welcome' }, context) {
    const text = texts[messageType](describe(requireUser(context)));
    return { messages: [{ role: 'user', content: { type: 'text', text } }] };
  },
});

const describe = ({ sub, name, email }: UserContext) =>
  email === undefined ? (name ?? sub) : `${name ?? sub} (${email})`;
