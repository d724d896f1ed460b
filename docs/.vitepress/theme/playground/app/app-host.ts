// The host's side of ext-apps (2026-01-26): what an app may ask the playground, and what it is told. All that it says is
// another's: what does not fit is refused.
import { isObject, type JsonObject, readText } from '../json.ts';
import type { McpRequest } from '../mcp-client.ts';
import { isForApps } from './app-page.ts';

export interface AppHostDeps {
  readonly version: string;
  /** What the tool was called with, and its result, as the server wrote it. */
  readonly input: JsonObject;
  readonly result: JsonObject;
  readonly csp: JsonObject;
  /** Those of the app's server, under its own names. */
  readonly tools: readonly JsonObject[];
  /** The tool, among these, that the app belongs to; undefined if that is unknown. */
  readonly tool: JsonObject | undefined;
  getContext(): JsonObject;
  post(message: JsonObject): void;
  /** At the app's server, as the user. @throws Error in words for the app. */
  call(request: McpRequest): Promise<JsonObject>;
  /** Whether the user let it. */
  openLink(url: string): Promise<boolean>;
  /** Whether the user lets it call a tool that destroys something. */
  mayDestroy(tool: string, args: JsonObject): Promise<boolean>;
  /** Shows what the app says. */
  say(what: string, text: string): void;
  resize(height: number): void;
}

export interface AppHost {
  /** Takes whatever the frame sends. */
  receive(message: unknown): void;
  changeContext(context: JsonObject): void;
  /** The frame goes. */
  tearDown(): void;
}

const PROTOCOL_VERSION = '2026-01-26';
/** At once: an app must not use up what its user may call. */
const MAX_REQUESTS = 10;
const MAX_HEIGHT = 1_000;
const MAX_SAID = 2_000;
const MAX_LEVEL = 32;
/** Of an address: what is longer nobody reads. */
const MAX_ADDRESS = 2_048;

class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

type Handle = (params: JsonObject, deps: AppHostDeps) => JsonObject | Promise<JsonObject>;

const initialize: Handle = (_params, { version, csp, tool, getContext }) => ({
  protocolVersion: PROTOCOL_VERSION,
  hostInfo: { name: 'postern-playground', version },
  hostCapabilities: {
    openLinks: {},
    serverTools: {},
    serverResources: {},
    logging: {},
    sandbox: { permissions: {}, csp },
  },
  hostContext: {
    ...getContext(),
    displayMode: 'inline',
    availableDisplayModes: ['inline'],
    containerDimensions: { maxHeight: MAX_HEIGHT },
    platform: 'web',
    ...(tool && { toolInfo: { tool } }),
  },
});

/** As its server says. Of others the page says what they can do: everything that the user can, at this server. */
const isDestructive = ({ annotations }: JsonObject): boolean =>
  isObject(annotations) &&
  annotations.destructiveHint === true &&
  annotations.readOnlyHint !== true;

const callTool: Handle = async (params, { tools, call, mayDestroy }) => {
  const tool = tools.find(({ name }) => name === params.name);
  if (tool === undefined || !isForApps(tool)) {
    throw new Refusal(-32602, `The server has no tool ${params.name} that its apps may call.`);
  }
  const args = isObject(params.arguments) ? params.arguments : {};
  if (isDestructive(tool) && !(await mayDestroy(String(params.name), args))) {
    throw new Refusal(-32000, 'The user did not allow it.');
  }
  return call({
    method: 'tools/call',
    params: { name: params.name, arguments: args },
    title: `The app calls ${params.name}`,
    inputSchema: tool.inputSchema,
  });
};

const readResource: Handle = (params, { call }) => {
  const uri = readText(params, 'uri');
  if (uri === undefined) throw new Refusal(-32602, 'params.uri must be a string.');
  return call({ method: 'resources/read', params: { uri }, title: `The app reads ${uri}` });
};

const openLink: Handle = async (params, deps) => {
  const given = readText(params, 'url') ?? '';
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || !['https:', 'http:'].includes(url.protocol)) {
    throw new Refusal(-32000, 'Only addresses that begin with https:// or http:// can be opened.');
  }
  // What stands before an @ looks like the page that it leads to.
  if (url.username !== '' || url.password !== '' || url.href.length > MAX_ADDRESS) {
    throw new Refusal(
      -32000,
      `An address has no user name or password, and at most ${MAX_ADDRESS} characters.`,
    );
  }
  if (!(await deps.openLink(url.href))) throw new Refusal(-32000, 'The user did not open it.');
  return {};
};

/** There is no model here: people who try an app see what one would be told. */
const sayToModel =
  (what: string): Handle =>
  ({ role: _role, ...told }, { say }) => {
    say(what, describe(told.content ?? told.structuredContent ?? told));
    return {};
  };

const REQUESTS: Readonly<Record<string, Handle>> = {
  'ui/initialize': initialize,
  ping: () => ({}),
  'tools/call': callTool,
  'resources/read': readResource,
  'ui/open-link': openLink,
  'ui/message': sayToModel('Message to the model'),
  'ui/update-model-context': sayToModel('Context for the model'),
  'ui/request-display-mode': () => ({ mode: 'inline' }),
};

function describe(told: unknown): string {
  const parts = (Array.isArray(told) ? told : [told]).map((one: unknown) =>
    isObject(one) && one.type === 'text' ? String(one.text) : JSON.stringify(one),
  );
  return parts.join('\n').slice(0, MAX_SAID);
}

export function createAppHost(deps: AppHostDeps): AppHost {
  let running = 0;
  let isTold = false;

  const notify = (method: string, params: JsonObject) =>
    deps.post({ jsonrpc: '2.0', method, params });

  /** Nothing is sent to an app before it says that it is ready. */
  function tellTool(): void {
    if (isTold) return;
    isTold = true;
    notify('ui/notifications/tool-input', { arguments: deps.input });
    notify('ui/notifications/tool-result', deps.result);
  }

  const notifications: Readonly<Record<string, (params: JsonObject) => void>> = {
    'ui/notifications/initialized': tellTool,
    'ui/notifications/size-changed'({ height }) {
      if (typeof height === 'number' && height > 0) deps.resize(Math.min(height, MAX_HEIGHT));
    },
    'notifications/message': ({ level, data }) =>
      deps.say(String(level ?? 'info').slice(0, MAX_LEVEL), describe(data)),
  };

  async function run(method: string, params: JsonObject): Promise<JsonObject> {
    const handle = Object.hasOwn(REQUESTS, method) ? REQUESTS[method] : undefined;
    if (handle === undefined) throw new Refusal(-32601, `The playground has no ${method}.`);
    if (running >= MAX_REQUESTS) throw new Refusal(-32000, 'Too many requests at once.');
    running += 1;
    try {
      return await handle(params, deps);
    } finally {
      running -= 1;
    }
  }

  async function answer(id: string | number, method: string, params: JsonObject): Promise<void> {
    try {
      deps.post({ jsonrpc: '2.0', id, result: await run(method, params) });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const code = error instanceof Refusal ? error.code : -32000;
      deps.post({ jsonrpc: '2.0', id, error: { code, message } });
    }
  }

  return {
    receive(message) {
      if (!isObject(message)) return;
      const { id, method, params } = message;
      // Answers to what it was asked: only that it goes, of which nobody waits for the answer.
      if (typeof method !== 'string') return;
      const given = isObject(params) ? params : {};
      if (typeof id === 'string' || typeof id === 'number') void answer(id, method, given);
      else if (Object.hasOwn(notifications, method)) notifications[method]?.(given);
    },
    changeContext(context) {
      if (isTold) notify('ui/notifications/host-context-changed', context);
    },
    tearDown() {
      if (!isTold) return;
      const params = { reason: 'The playground closes it.' };
      deps.post({ jsonrpc: '2.0', id: 1, method: 'ui/resource-teardown', params });
    },
  };
}
