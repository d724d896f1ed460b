// §2.4, §2.6, §2.7: the tool, the prompts and the resources that come with the gateway.
import {
  definePrompt,
  defineResource,
  defineTool,
  requireUser,
  type UserContext,
} from 'postern/define';

export const servicePing = defineTool({
  name: 'service_ping',
  description: 'Answers with the name of the service and your message.',
  inputSchema: {
    type: 'object',
    properties: {
      message: { type: 'string', description: 'Text to send back; pong if left out.' },
    },
    additionalProperties: false,
  },
  run({ message = 'pong' }, { service }) {
    return { content: [{ type: 'text', text: `${service.displayName} MCP Server: ${message}` }] };
  },
});

const greetings = {
  formal: (name: string) => `Write a formal greeting to ${name}, polite and reserved.`,
  casual: (name: string) => `Write a casual greeting to ${name}, short and relaxed.`,
  friendly: (name: string) => `Write a friendly greeting to ${name}, warm and welcoming.`,
  enthusiastic: (name: string) => `Write an enthusiastic greeting to ${name}, full of energy!`,
};

export const greeting = definePrompt({
  name: 'greeting',
  description: 'Greets a person by name.',
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

export const serverConfig = defineResource({
  uri: 'config://server',
  name: 'Server Configuration',
  description: 'Name, version and environment of this service.',
  mimeType: 'application/json',
  // The same for all callers until the next deploy.
  cache: { ttlMs: 60_000, scope: 'public' },
  read({ service: { name, version, environment } }) {
    return { text: JSON.stringify({ name, version, environment }) };
  },
});

export const userProfile = defineResource({
  uri: 'user://profile',
  name: 'User Profile',
  description: 'Claims of the logged-in user: sub and, where present, email, name and groups.',
  mimeType: 'application/json',
  read(context) {
    // Listed one by one, since the user context also holds the token.
    const { sub, email, name, groups } = requireUser(context);
    return { text: JSON.stringify({ sub, email, name, groups }) };
  },
});
