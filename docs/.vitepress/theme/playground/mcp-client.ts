// An MCP client of both eras, small enough to show all that it sends.
import { APPS_EXTENSION } from './app/app-page.ts';
import { type Send, WITH_TOKEN } from './exchange.ts';
import { isObject, type JsonObject, readText } from './json.ts';
import { mirrorArguments, toHeaderValue } from './mcp-headers.ts';
import {
  CallError,
  type CallListener,
  type Era,
  REFUSALS,
  react,
  readMessages,
  tellListener,
} from './messages.ts';

export interface McpClient {
  readonly era: Era;
  /** Opens a session, or asks what the server is. @throws CallError */
  connect(): Promise<JsonObject>;
  /** @throws CallError for an error of the protocol, Error when nothing answers. */
  call(request: McpRequest, listener?: CallListener, signal?: AbortSignal): Promise<JsonObject>;
  /** All pages of a list. */
  list(method: string, member: string): Promise<readonly JsonObject[]>;
  /** Ends the session, where there is one. */
  close(): Promise<void>;
}

export interface McpRequest {
  readonly method: string;
  readonly params: JsonObject;
  readonly title: string;
  readonly note?: string;
  /** Of the tool that is called: which of its arguments are repeated in headers. */
  readonly inputSchema?: unknown;
}

export interface McpClientDeps {
  readonly url: string;
  readonly send: Send;
  /** Without a token nobody has logged in, and nobody has to. */
  readonly hasToken: boolean;
  readonly version: string;
  /** Of every answer: when the session ends, and how many calls are left. */
  noteHeaders(headers: Headers): void;
}

const SESSION_VERSION = '2025-11-25';
const STATELESS_VERSION = '2026-07-28';
const CAPABILITIES = { elicitation: {}, sampling: {}, roots: {}, extensions: APPS_EXTENSION };
const MAX_ROUNDS = 20;

const deafListener: CallListener = {
  progress() {},
  log() {},
  ask: async () => undefined,
  listRoots: () => [],
};

export const createMcpClient = (era: Era, deps: McpClientDeps): McpClient =>
  era === 'session' ? createSessionClient(deps) : createStatelessClient(deps);

interface Post {
  readonly message: JsonObject;
  readonly headers?: Readonly<Record<string, string>>;
  readonly title: string;
  readonly note?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What both eras do. */
function createPost({ url, send, hasToken, noteHeaders }: McpClientDeps) {
  return async function post({ message, headers, title, note, signal }: Post) {
    const answer = await send({
      title,
      ...(note !== undefined && { note }),
      method: 'POST',
      url,
      headers: {
        ...(hasToken && WITH_TOKEN),
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: JSON.stringify(message),
      ...(signal && { signal }),
    });
    noteHeaders(answer.headers);
    return answer;
  };
}

/** @throws CallError */
function readResult(message: JsonObject, status: number): JsonObject {
  if (isObject(message.result)) return message.result;
  throw new CallError(status, isObject(message.error) ? message.error : {});
}

const createIds = () => {
  let last = 0;
  return () => {
    last += 1;
    return last;
  };
};

async function listAll(
  call: McpClient['call'],
  method: string,
  member: string,
): Promise<readonly JsonObject[]> {
  const items: JsonObject[] = [];
  let cursor: string | undefined;
  do {
    const params = cursor === undefined ? {} : { cursor };
    const title = cursor === undefined ? method : `${method}, next page`;
    const result = await call({ method, params, title });
    const page = result[member];
    if (Array.isArray(page)) items.push(...page.filter(isObject));
    cursor = readText(result, 'nextCursor');
  } while (cursor !== undefined);
  return items;
}

/** 2025-11-25: a session, and questions as requests on the stream of the call. */
function createSessionClient(deps: McpClientDeps): McpClient {
  const post = createPost(deps);
  const nextId = createIds();
  let session: Readonly<Record<string, string>> = {};

  async function call(
    { method, params, title, note }: McpRequest,
    listener: CallListener = deafListener,
    signal?: AbortSignal,
  ): Promise<JsonObject> {
    const id = nextId();
    const message = { jsonrpc: '2.0', id, method, params: withProgress(params, id) };
    const answer = await post({ message, headers: session, title, note, signal });
    signal?.addEventListener('abort', () => tellCancelled(id), { once: true });
    const opened = answer.headers.get('mcp-session-id');
    if (opened !== null) session = toSessionHeaders(opened);
    // Questions wait for people, and the call may end before they answer: it is read on all the while.
    const running = new AbortController();
    const whileRunning = signal ? AbortSignal.any([signal, running.signal]) : running.signal;
    try {
      for await (const received of readMessages(answer)) {
        if (received.method === undefined) return readResult(received, answer.status);
        if (received.id === undefined) tellListener(received, listener);
        else answerQuestion(received, listener, whileRunning).catch(() => {});
      }
    } finally {
      running.abort();
    }
    throw new CallError(answer.status, { message: 'The response ended without a result' });
  }

  async function answerQuestion(
    { id, method, params }: JsonObject,
    listener: CallListener,
    signal: AbortSignal,
  ): Promise<void> {
    const reaction = await react(method, params, listener);
    signal.throwIfAborted();
    const answer = await post({
      message: { jsonrpc: '2.0', id, ...reaction },
      headers: session,
      title: 'Answer the request',
      note: 'A separate request: the call waits for it on its stream.',
    });
    await answer.text();
  }

  /** A stream that breaks off is no cancellation: the server would go on. */
  function tellCancelled(requestId: number): void {
    post({
      message: { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } },
      headers: session,
      title: 'Cancel the call',
    })
      .then((answer) => answer.text())
      .catch(() => {});
  }

  return {
    era: 'session',
    async connect() {
      const result = await call({
        method: 'initialize',
        params: {
          protocolVersion: SESSION_VERSION,
          capabilities: CAPABILITIES,
          clientInfo: { name: 'postern-playground', version: deps.version },
        },
        title: 'Open a session',
        note: 'The response headers have its ID, and the time when it ends.',
      });
      const told = await post({
        message: { jsonrpc: '2.0', method: 'notifications/initialized' },
        headers: session,
        title: 'Say that the client is ready',
      });
      await told.text();
      return result;
    },
    call,
    list: (method, member) => listAll(call, method, member),
    async close() {
      if (session['mcp-session-id'] === undefined) return;
      const answer = await deps.send({
        title: 'End the session',
        method: 'DELETE',
        url: deps.url,
        headers: { ...(deps.hasToken && WITH_TOKEN), ...session },
      });
      session = {};
      await answer.text();
    },
  };
}

const toSessionHeaders = (id: string) => ({
  'mcp-session-id': id,
  'MCP-Protocol-Version': SESSION_VERSION,
});

const withProgress = (params: JsonObject, id: number): JsonObject => ({
  ...params,
  _meta: { ...(isObject(params._meta) && params._meta), progressToken: id },
});

/** 2026-07-28: each request says all of itself, and a question ends the call until it comes again with the answer. */
function createStatelessClient(deps: McpClientDeps): McpClient {
  const post = createPost(deps);
  const nextId = createIds();

  async function callOnce(
    { method, params, title, note, inputSchema }: McpRequest,
    listener: CallListener,
    signal: AbortSignal | undefined,
  ): Promise<JsonObject> {
    const id = nextId();
    const meta = {
      progressToken: id,
      'io.modelcontextprotocol/protocolVersion': STATELESS_VERSION,
      'io.modelcontextprotocol/clientInfo': { name: 'postern-playground', version: deps.version },
      'io.modelcontextprotocol/clientCapabilities': CAPABILITIES,
      'io.modelcontextprotocol/logLevel': 'debug',
    };
    const subject = readText(params, 'name') ?? readText(params, 'uri');
    const answer = await post({
      message: { jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } },
      headers: {
        'MCP-Protocol-Version': STATELESS_VERSION,
        'Mcp-Method': method,
        ...(subject !== undefined && { 'Mcp-Name': toHeaderValue(subject) }),
        ...mirrorArguments(inputSchema, params.arguments),
      },
      title,
      note,
      signal,
    });
    for await (const received of readMessages(answer)) {
      if (received.method === undefined) return readResult(received, answer.status);
      tellListener(received, listener);
    }
    throw new CallError(answer.status, { message: 'The response ended without a result' });
  }

  async function call(
    request: McpRequest,
    listener: CallListener = deafListener,
    signal?: AbortSignal,
  ): Promise<JsonObject> {
    let next = request;
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const result = await callOnce(next, listener, signal);
      if (result.resultType !== 'input_required') return result;
      const inputResponses = await answerAll(result.inputRequests, listener);
      signal?.throwIfAborted();
      next = {
        ...request,
        title: `${request.title}, with the answer`,
        note: 'The same call again, with the answer and the state of the request.',
        params: { ...request.params, inputResponses, requestState: result.requestState },
      };
    }
    throw new Error('The tool keeps asking.');
  }

  return {
    era: 'stateless',
    connect: () =>
      call({
        method: 'server/discover',
        params: {},
        title: 'Identify the server',
        note: 'There is no session: every request is complete.',
      }),
    call,
    list: (method, member) => listAll(call, method, member),
    async close() {},
  };
}

async function answerAll(
  inputRequests: unknown,
  listener: CallListener,
): Promise<Record<string, JsonObject>> {
  const answers: [key: string, answer: JsonObject][] = [];
  for (const [key, request] of Object.entries(isObject(inputRequests) ? inputRequests : {})) {
    const reaction = isObject(request)
      ? await react(request.method, request.params, listener)
      : { error: REFUSALS.unknown };
    // This revision has no way to say no: the call is left as it is, and ends at the server by itself.
    if ('error' in reaction) throw new Error(describeStop(reaction.error));
    answers.push([key, reaction.result]);
  }
  return Object.fromEntries(answers);
}

const describeStop = (refusal: (typeof REFUSALS)[keyof typeof REFUSALS]): string =>
  refusal === REFUSALS.declined
    ? 'You declined to answer, so the call did not continue.'
    : 'The tool sends a request that a page cannot answer.';
