// An MCP server on stdio (session era) that does on request what servers do wrong. Without a package, so that it starts fast.
// Options (argv): modes that change how it begins.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const modes = new Set(process.argv.slice(2));
const send = (message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const text = (value) => ({
  content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }],
});
/** Requests that are never answered, by which later ones are answered. */
const held = [];
/** Those that wait for the tool goOn. */
const goOn = [];
const cancelled = [];
const answers = new Map();
let lastId = 0;
let logLevel;
let clientCapabilities;
let initialized = 0;

const ask = (method, params = {}) =>
  new Promise((resolve) => {
    lastId += 1;
    answers.set(lastId, resolve);
    send({ id: lastId, method, params });
  });

const tools = {
  echo: ({ value }) => value,
  pid: () => process.pid,
  env: () => process.env,
  cancelled: () => cancelled,
  logLevel: () => logLevel ?? '',
  clientCapabilities: () => clientCapabilities,
  initialized: () => initialized,
  meta: (_args, { _meta }) => _meta ?? {},
  hang: (_args, _params, id) => {
    held.push(id);
    return undefined;
  },
  exit: ({ code = 1 }) => process.exit(code),
  twice: (_args, _params, id) => {
    send({ id, result: text('first') });
    return 'second';
  },
  strangeId: (_args, _params, id) => {
    send({ id: 4711, result: text('stray') });
    for (const other of [`0${id}`, `${id}.0`, ` ${id}`, `${id}n`]) {
      send({ id: other, result: text('stray') });
    }
    return 'mine';
  },
  textId: (_args, _params, id) => {
    send({ id: String(id), result: text('mine') });
  },
  textIdOfError: (_args, _params, id) => {
    send({ id: String(id), error: { code: -32000, message: 'mine' } });
  },
  textProgressToken: (_args, { _meta }) => {
    const progressToken = String(_meta?.progressToken);
    send({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
    return 'done';
  },
  /** At one go, so that what others are answered stands before or behind it. */
  large: ({ bytes }) => 'x'.repeat(bytes),
  /** Piece by piece. */
  huge: ({ bytes }, _params, id) => {
    process.stdout.write(
      `{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`,
    );
    const piece = 'x'.repeat(65536);
    let left = bytes;
    const write = () => {
      while (left > 0) {
        left -= piece.length;
        if (!process.stdout.write(piece)) return process.stdout.once('drain', write);
      }
      process.stdout.write('"}]}}\n');
    };
    write();
  },
  half: (_args, _params, id) => {
    process.stdout.write(`{"jsonrpc":"2.0","id":${id},"result":{"cont`, () => process.exit(3));
  },
  malformed: (_args, _params, id) => {
    send({ id, result: 'no object' });
  },
  /** As fast as it is read, until it is ended. */
  flood: ({ line }) => {
    const piece = `${line}\n`.repeat(65_536 / (line.length + 1));
    const write = () => {
      for (let time = 0; time < 16; time += 1) {
        if (!process.stdout.write(piece)) return process.stdout.once('drain', write);
      }
      setImmediate(write);
    };
    setImmediate(write);
    return 'done';
  },
  /** So many notifications and the answer, all in one line. */
  batch: ({ count }, _params, id) => {
    const changed = { jsonrpc: '2.0', method: 'notifications/tools/list_changed' };
    const answer = { jsonrpc: '2.0', id, result: text('done') };
    process.stdout.write(`${JSON.stringify([...Array(count).fill(changed), answer])}\n`);
  },
  noJson: () => {
    process.stdout.write('Listening on \u001b[31mport\u001b[0m 3000\n{"a":\n\n[1,2]\n"text"\n');
    return 'done';
  },
  stderr: ({ lines: written }) => {
    for (const line of written) process.stderr.write(`${line}\n`);
    return 'done';
  },
  fork: ({ script }) => {
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    return new Promise((resolve) => child.stdout.once('data', () => resolve(child.pid)));
  },
  stopReading: (_args, _params, id) => {
    send({ id, result: text('as you wish') });
    process.stdin.pause();
    lines.pause();
    setInterval(() => {}, 1000);
  },
  progress: async ({ count = 3 }, { _meta }) => {
    for (let done = 1; done <= count; done += 1) {
      send({
        method: 'notifications/progress',
        params: { progressToken: _meta?.progressToken, progress: done, total: count },
      });
    }
    return 'done';
  },
  slowly: async ({ steps }, { _meta }) => {
    for (let done = 1; done <= steps; done += 1) {
      send({
        method: 'notifications/progress',
        params: { progressToken: _meta?.progressToken, progress: done },
      });
      await new Promise((resolve) => goOn.push(resolve));
    }
    return 'done';
  },
  soon: ({ ms }) => new Promise((resolve) => setTimeout(resolve, ms, 'done')),
  goOn: () => {
    goOn.shift()?.();
    return 'done';
  },
  log: ({ level = 'info', data = 'said' }) => {
    send({ method: 'notifications/message', params: { level, data } });
    return 'done';
  },
  ask: async ({ method, params }) => JSON.stringify(await ask(method, params)),
  notify: ({ method, params }) => {
    send({ method, params });
    return 'done';
  },
};

const methods = {
  initialize: ({ protocolVersion, capabilities }) => {
    clientCapabilities = capabilities;
    return {
      protocolVersion: modes.has('old')
        ? '2024-11-05'
        : modes.has('unknown-version')
          ? '1999-01-01'
          : protocolVersion,
      capabilities:
        modes.has('needs-elicitation') && capabilities.elicitation === undefined
          ? {}
          : {
              tools: { listChanged: true },
              resources: { subscribe: true, listChanged: true },
              prompts: {},
              logging: {},
            },
      serverInfo: { name: 'scripted', version: '1.2.3', extra: true },
      instructions: modes.has('says-pid') ? `I am ${process.pid}.` : 'Ask for what you need.',
    };
  },
  'tools/list': () => ({
    tools: [...Object.keys(tools), ...listAskingTools()].map((name) => ({
      name,
      inputSchema: { type: 'object' },
    })),
  }),
  'tools/call': async (params, id) => {
    const tool = tools[params.name];
    if (tool === undefined)
      throw Object.assign(new Error(`no tool ${params.name}`), { code: -32602 });
    const value = await tool(params.arguments ?? {}, params, id);
    return value === undefined ? undefined : text(value);
  },
  'logging/setLevel': ({ level }) => {
    logLevel = level;
    return {};
  },
  'resources/list': () => ({
    resources: modes.has('more-resources') ? RESOURCES : RESOURCES.slice(0, 1),
  }),
  'resources/subscribe': ({ uri }) => {
    if (uri === 'none://') throw Object.assign(new Error('no such resource'), { code: -32002 });
    subscriptions.push(`+${uri}`);
    return {};
  },
  'resources/unsubscribe': ({ uri }) => {
    subscriptions.push(`-${uri}`);
    return {};
  },
};
/** As some servers do, for clients that can be asked only. */
const listAskingTools = () =>
  modes.has('lists-asking-tools') && clientCapabilities.elicitation !== undefined
    ? ['book', 'survey']
    : [];
const RESOURCES = ['1', '2', 'fence'].map((name) => ({ uri: `a://${name}`, name }));
const subscriptions = [];
tools.subscriptions = () => subscriptions;

const notified = {
  'notifications/initialized': () => {
    initialized += 1;
  },
  'notifications/cancelled': ({ requestId }) => cancelled.push(requestId),
};

async function receive({ id, method, params = {}, result, error }) {
  if (method === undefined) {
    answers.get(id)?.({ result, error });
    return;
  }
  if (id === undefined) {
    notified[method]?.(params);
    return;
  }
  if (method === 'server/discover' && modes.has('dies-of-discover')) process.exit(9);
  if (method === 'server/discover' && modes.has('ignores-discover')) {
    process.stderr.write('ignored server/discover\n');
    return;
  }
  if (method === 'initialize' && modes.has('refuses-initialize')) {
    send({ id, error: { code: -32000, message: 'Log in first: run "scripted login".' } });
    return;
  }
  try {
    if (methods[method] === undefined)
      throw Object.assign(new Error('Method not found'), { code: -32601 });
    const value = await methods[method](params, id);
    if (value !== undefined) send({ id, result: value });
  } catch (failure) {
    send({
      id,
      error: { code: failure.code ?? -32603, message: failure.message, data: { kept: true } },
    });
  }
}

if (modes.has('crashes')) process.exit(7);
if (modes.has('stays')) {
  process.on('SIGTERM', () => {});
  setInterval(() => {}, 1000);
}
const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => void receive(JSON.parse(line)));
