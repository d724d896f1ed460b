// §2.6: user-context.
import { definePrompt, requireUser, type UserContext } from 'postern/define';

const texts = {
  welcome: (user: string) => `Welcome ${user} and offer help with the available tools.`,
  status: (user: string) => `Tell ${user} who they are logged in as, and what they can use here.`,
  summary: (user: string) => `Summarise for ${user} what was done in this conversation so far.`,
};

export const userContext = definePrompt({
  name: 'user-context',
  description: 'Addresses the logged-in user by name.',
  arguments: [
    {
      name: 'messageType',
      description: 'welcome (the default), status or summary.',
      required: false,
      values: ['welcome', 'status', 'summary'],
    },
  ],
  get({ messageType = 'welcome' }, context) {
    const text = texts[messageType](describeUser(requireUser(context)));
    return { messages: [{ role: 'user', content: { type: 'text', text } }] };
  },
});

const describeUser = ({ sub, name, email }: UserContext) =>
  email === undefined ? (name ?? sub) : `${name ?? sub} (${email})`;
