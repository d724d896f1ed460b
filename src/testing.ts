/**
 * `postern/testing`: a client for tests of tools, prompts and resources. It calls them through a real gateway, as users' clients
 * do.
 *
 * @packageDocumentation
 */

import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from './config/load.ts';
import { DefinitionError, type JsonRpcErrorObject } from './errors/gateway-error.ts';
import { createGateway } from './gateway/gateway.ts';
import type { UserContext } from './http/endpoint/message.ts';
import { parseKeySet } from './logins/auth/jwk.ts';
import { NO_KEYS } from './logins/auth/key-set.ts';
import type { Arguments, Catalog } from './mcp/catalog/catalog.ts';
import type {
  ElicitAnswer,
  ElicitRequest,
  RootsAnswer,
  SampleAnswer,
  SampleParams,
} from './mcp/catalog/client-requests.ts';
import type {
  PromptDescription,
  PromptResult,
  ResourceDescription,
  ResourceResult,
  ResourceTemplateDescription,
  SkillDescription,
  ToolDescription,
  ToolResult,
} from './mcp/catalog/content.ts';
import { LISTING_CONTEXT } from './mcp/catalog/own-catalog.ts';
import { encodeHeader } from './mcp/upstream/envelope.ts';
import { systemClock } from './platform/clock.ts';
import { isObject, type JsonObject } from './platform/json.ts';

/** The calling user. `claims` are additional claims of the token. */
export type TestUser = Partial<Omit<UserContext, 'token'>>;

export interface ConnectOptions {
  /** The logged-in user; `sub` defaults to `test-user`. If omitted, calls are anonymous, and tools get no `user`. */
  readonly user?: TestUser;
  /** Answers to requests from tools. The client declares support only for the kinds that have a function. */
  readonly answer?: QuestionHandlers;
}

/** Each method throws a {@link CallError} if the gateway responds with an error. */
export interface TestClient {
  listTools(): Promise<readonly ToolDescription[]>;
  /** Resolves to the tool's result; `isError` is true if the tool reports a failure, or the arguments are invalid. */
  callTool(name: string, args?: Arguments): Promise<ToolResult>;
  listPrompts(): Promise<readonly PromptDescription[]>;
  getPrompt(name: string, args?: Readonly<Record<string, string>>): Promise<PromptResult>;
  listResources(): Promise<readonly ResourceDescription[]>;
  listResourceTemplates(): Promise<readonly ResourceTemplateDescription[]>;
  listSkills(): Promise<readonly SkillDescription[]>;
  readResource(uri: string): Promise<ResourceResult>;
  /** Stops the gateway. */
  close(): Promise<void>;
}

/**
 * Starts a gateway that serves the catalogue on a free port of this machine, and resolves to a client of it. The user's token is
 * verified as in production; rate limits are off.
 *
 * @throws DefinitionError if the argument is not a catalogue.
 */
export async function connect(
  catalog: Catalog,
  { user, answer = {} }: ConnectOptions = {},
): Promise<TestClient> {
  // The types guarantee this only in TypeScript.
  if (typeof catalog?.callTool !== 'function') {
    throw new DefinitionError(
      'connect takes a catalogue: pass createLocalCatalog({ tools: [ … ] }), or the default export of your catalogue file.',
    );
  }
  const login = createTestLogin();
  const folder = await mkdtemp(join(tmpdir(), 'postern-testing-'));
  const settings = {
    HOST: '127.0.0.1',
    DATA_DIR: folder,
    LOG_LEVEL: 'error',
    METRICS_ENABLED: 'false',
    RATE_LIMIT_ENABLED: 'false',
    OAUTH_ENABLED: 'false',
    ...(user === undefined
      ? { AUTH_REQUIRED: 'false' }
      : { OIDC_ISSUER: ISSUER, OIDC_AUDIENCE: AUDIENCE }),
  };
  const config = loadConfig(settings);
  // The system picks a free port.
  const server = { ...config.server, port: 0 };
  const gateway = await createGateway({ ...config, server }, { catalog, keySet: login.keySet });
  const port = await gateway.listen();

  const token = user && login.issueToken(toClaims(user));
  const send = createSendRequest(`http://127.0.0.1:${port}/mcp`, token, answer, catalog);

  return {
    listTools: () => listAll(send, 'tools/list', 'tools'),
    callTool: (name, args = {}) => send('tools/call', { name, arguments: args }, name),
    listPrompts: () => listAll(send, 'prompts/list', 'prompts'),
    getPrompt: (name, args = {}) => send('prompts/get', { name, arguments: args }, name),
    listResources: () => listAll(send, 'resources/list', 'resources'),
    listResourceTemplates: () => listAll(send, 'resources/templates/list', 'resourceTemplates'),
    listSkills: () => listAll(send, 'skills/list', 'skills'),
    readResource: (uri) => send('resources/read', { uri }, uri),
    async close() {
      await gateway.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const toClaims = ({ sub = 'test-user', emailVerified, claims, ...others }: TestUser) => ({
  sub,
  ...others,
  ...(emailVerified !== undefined && { email_verified: emailVerified }),
  ...claims,
});

async function listAll<Item>(
  send: SendRequest,
  method: string,
  member: string,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const page = await send<Readonly<Record<string, Item[]>> & { readonly nextCursor?: string }>(
      method,
      cursor === undefined ? {} : { cursor },
    );
    items.push(...(page[member] ?? []));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return items;
}

/** Names that cannot be registered (RFC 2606 §2). */
const ISSUER = 'https://provider.test';
const AUDIENCE = 'https://gateway.test/mcp';

const HOUR_SECONDS = 3600;
const HEADER = { alg: 'ES256', kid: 'test', typ: 'JWT' };

function createTestLogin() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: HEADER.kid, alg: HEADER.alg };
  const { usable: keys } = parseKeySet(Buffer.from(JSON.stringify({ keys: [jwk] })));
  return {
    keySet: { ...NO_KEYS, find: () => keys, findAfterRefresh: async () => keys },
    /** Issues a JWT with these claims, valid for an hour. */
    issueToken(claims: Readonly<Record<string, unknown>>): string {
      const iat = Math.floor(systemClock.now() / 1000);
      const payload = { iss: ISSUER, aud: AUDIENCE, iat, exp: iat + HOUR_SECONDS, ...claims };
      const signed = `${encode(HEADER)}.${encode(payload)}`;
      const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
      return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`;
    },
  };
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

// Sends requests of MCP 2026-07-28 over HTTP as a client does: answers requests from the server, and repeats the call.

/** The client's answers to requests from tools. It declares support for the kinds that have a function. */
export interface QuestionHandlers {
  readonly elicit?: (question: ElicitRequest['params']) => ElicitAnswer | Promise<ElicitAnswer>;
  readonly sample?: (question: SampleParams) => SampleAnswer | Promise<SampleAnswer>;
  readonly listRoots?: () => RootsAnswer | Promise<RootsAnswer>;
}

/** The gateway responded with an error instead of a result. */
export class CallError extends Error {
  override readonly name = 'CallError';
  /** The JSON-RPC code: -32602 means an unknown name or invalid arguments. */
  readonly code: number;
  /** Additional facts, for example which argument is invalid. */
  readonly data: unknown;

  constructor({ code, message, data }: JsonRpcErrorObject) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** @throws CallError */
type SendRequest = <Result>(method: string, params: JsonObject, name?: string) => Promise<Result>;

/** A tool that keeps asking is faulty, and its test must end. */
const MAX_ROUNDS = 100;

function createSendRequest(
  url: string,
  token: string | undefined,
  answer: QuestionHandlers,
  catalog: Catalog,
): SendRequest {
  const capabilities = {
    ...(answer.elicit && { elicitation: {} }),
    ...(answer.sample && { sampling: {} }),
    ...(answer.listRoots && { roots: {} }),
  };
  const meta = {
    'io.modelcontextprotocol/protocolVersion': VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'postern/testing', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };

  async function post(method: string, params: JsonObject, name?: string) {
    /** Arguments of the tool that are mirrored in headers. They depend only on the tool, if its author wrote the catalogue. */
    const mirrored: Record<string, string> = {};
    if (method === 'tools/call' && name !== undefined) {
      for (const { header, path } of await catalog.mirroredParams(name, LISTING_CONTEXT)) {
        const value = path.reduce<unknown>(
          (at, key) => (isObject(at) ? at[key] : undefined),
          params.arguments,
        );
        if (value !== undefined) mirrored[header] = encodeHeader(String(value));
      }
    }
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'MCP-Protocol-Version': VERSION,
        'Mcp-Method': method,
        ...(name !== undefined && { 'Mcp-Name': encodeHeader(name) }),
        ...mirrored,
        ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
    });
    const text = await response.text();
    if (!response.headers.get('content-type')?.startsWith('text/event-stream'))
      return JSON.parse(text);
    // The response comes last, after notifications.
    const lines = text.split('\n').filter((line) => line.startsWith('data: {'));
    return JSON.parse(lines.at(-1)?.slice('data: '.length) ?? 'null');
  }

  return async function sendRequest(method, params, name) {
    let answers: JsonObject = {};
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const { error, result } = await post(method, { ...params, ...answers }, name);
      if (error !== undefined) throw new CallError(error);
      // Removes members that the protocol adds to the catalogue's result.
      const { resultType, _meta, ttlMs: _ttl, cacheScope: _scope, ...answered } = result;
      if (resultType !== 'input_required') return answered;
      const questions: Readonly<Record<string, Question>> = result.inputRequests;
      const given = Object.entries(questions).map(async ([key, question]) => [
        key,
        await answerQuestion(question, answer),
      ]);
      const inputResponses = Object.fromEntries(await Promise.all(given));
      answers = { inputResponses, requestState: result.requestState };
    }
    throw new Error(`${name ?? method} asked more than ${MAX_ROUNDS} times.`);
  };
}

const VERSION = '2026-07-28';

type Question =
  | ElicitRequest
  | { readonly method: 'sampling/createMessage'; readonly params: SampleParams }
  | { readonly method: 'roots/list' };

function answerQuestion(question: Question, answer: QuestionHandlers): unknown {
  if (question.method === 'elicitation/create') return answer.elicit?.(question.params);
  if (question.method === 'sampling/createMessage') return answer.sample?.(question.params);
  return answer.listRoots?.();
}
