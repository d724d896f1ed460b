// A program that speaks MCP of the session era, whose every word is marked. What it hears of clients goes to the file of its
// first argument; without a package, so that it starts fast.
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const MARK = 'mark-of-the-server';
const [heardPath] = process.argv.slice(2);
const send = (message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const say = (words) => ({ content: [{ type: 'text', text: `${MARK} ${words}` }] });
const described = { description: MARK };
/** By the ID of a question, what goes on with its answer. */
const waiting = new Map();

const TOOLS = {
  say: () => say('said'),
  fail: () => ({ ...say('failed'), isError: true }),
  broken: () => {
    throw new Error(MARK);
  },
  tell: ({ _meta }) => {
    send({ method: 'notifications/message', params: { level: 'error', data: MARK } });
    const progressToken = _meta?.progressToken;
    if (progressToken !== undefined) {
      const params = { progressToken, progress: 1, message: MARK };
      send({ method: 'notifications/progress', params });
    }
    return say('told');
  },
  elicit: (_params, id) => {
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
    const question = `question-${id}`;
    waiting.set(question, () => send({ id, result: say('asked') }));
    send({
      id: question,
      method: 'elicitation/create',
      params: { message: MARK, requestedSchema },
    });
  },
};

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    serverInfo: { name: 'speaking', version: '1.0.0' },
    capabilities: {
      tools: {},
      prompts: {},
      resources: { subscribe: true },
      logging: {},
      completions: {},
    },
    instructions: MARK,
  }),
  'tools/list': () => ({
    tools: Object.keys(TOOLS).map((name) => ({
      name,
      ...described,
      inputSchema: { type: 'object' },
    })),
  }),
  'tools/call': (params, id) => TOOLS[params.name](params, id),
  'prompts/list': () => ({
    prompts: [{ name: 'prompt', ...described, arguments: [{ name: 'a' }] }],
  }),
  'prompts/get': () => ({ messages: [{ role: 'user', content: { type: 'text', text: MARK } }] }),
  'resources/list': () => ({ resources: [{ uri: 'local://r', name: 'r', ...described }] }),
  'resources/templates/list': () => ({
    resourceTemplates: [{ uriTemplate: 'local://t/{id}', name: 't', ...described }],
  }),
  'resources/read': ({ uri }) => ({ contents: [{ uri, text: MARK }] }),
  'resources/subscribe': ({ uri }) => {
    setImmediate(() => send({ method: 'notifications/resources/updated', params: { uri } }));
    return {};
  },
  'resources/unsubscribe': () => ({}),
  'completion/complete': () => ({ completion: { values: [MARK] } }),
  'logging/setLevel': () => ({}),
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  appendFileSync(heardPath, `${line}\n`);
  const { id, method, params = {} } = JSON.parse(line);
  if (method === undefined) waiting.get(id)?.();
  else if (id !== undefined) {
    try {
      const result = METHODS[method](params, id);
      if (result !== undefined) send({ id, result });
    } catch (error) {
      send({ id, error: { code: -32099, message: error.message } });
    }
  }
}
