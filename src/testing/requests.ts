// Requests of MCP 2026-07-28 over HTTP, as a client sends them: what the server asks is answered, and the call goes on.
import type { JsonRpcErrorObject } from '../errors/gateway-error.ts';
import type {
  ElicitAnswer,
  ElicitRequest,
  RootsAnswer,
  SampleAnswer,
  SampleParams,
} from '../mcp/catalog/client-requests.ts';
import type { MirroredParam } from '../mcp/catalog/content.ts';
import { encodeHeader } from '../mcp/upstream/envelope.ts';
import { isObject, type JsonObject } from '../platform/json.ts';

/** How the client answers what tools ask. It declares that it can answer what there is a function for. */
export interface QuestionHandlers {
  readonly elicit?: (question: ElicitRequest['params']) => ElicitAnswer | Promise<ElicitAnswer>;
  readonly sample?: (question: SampleParams) => SampleAnswer | Promise<SampleAnswer>;
  readonly listRoots?: () => RootsAnswer | Promise<RootsAnswer>;
}

/** The gateway answered a request with an error in place of a result. */
export class CallError extends Error {
  override readonly name = 'CallError';
  /** Of JSON-RPC: -32602 is a name or arguments that do not fit. */
  readonly code: number;
  /** What there is to know beside the message: for example which argument does not fit. */
  readonly data: unknown;

  constructor({ code, message, data }: JsonRpcErrorObject) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** @throws CallError */
export type SendRequest = <Result>(
  method: string,
  params: JsonObject,
  name?: string,
) => Promise<Result>;

interface RequestOptions {
  readonly url: string;
  readonly token: string | undefined;
  readonly answer: QuestionHandlers;
  /** Arguments of the tool that are repeated in headers. */
  findMirroredParams(tool: string): Promise<readonly MirroredParam[]>;
}

/** A tool that asks again and again is wrong, and its test must end. */
const MAX_ROUNDS = 100;

export function createSendRequest(options: RequestOptions): SendRequest {
  const { url, token, answer, findMirroredParams } = options;
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

  async function describeArguments(tool: string, args: unknown): Promise<Record<string, string>> {
    const headers: Record<string, string> = {};
    for (const { header, path } of await findMirroredParams(tool)) {
      const value = path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), args);
      if (value !== undefined) headers[header] = encodeHeader(String(value));
    }
    return headers;
  }

  async function post(method: string, params: JsonObject, name?: string) {
    const mirrored =
      method === 'tools/call' && name !== undefined
        ? await describeArguments(name, params.arguments)
        : {};
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
    return response.headers.get('content-type')?.startsWith('text/event-stream')
      ? readLastEvent(text)
      : JSON.parse(text);
  }

  return async function sendRequest(method, params, name) {
    let answers: JsonObject = {};
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const { error, result } = await post(method, { ...params, ...answers }, name);
      if (error !== undefined) throw new CallError(error);
      // What the protocol adds is none of the catalogue's answer.
      const { resultType, _meta, ttlMs: _ttl, cacheScope: _scope, ...answered } = result;
      if (resultType !== 'input_required') return answered;
      const inputResponses = await answerQuestions(result.inputRequests, answer);
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

async function answerQuestions(
  questions: Readonly<Record<string, Question>>,
  answer: QuestionHandlers,
): Promise<JsonObject> {
  const answers = Object.entries(questions).map(async ([key, question]) => [
    key,
    await answerQuestion(question, answer),
  ]);
  return Object.fromEntries(await Promise.all(answers));
}

function answerQuestion(question: Question, answer: QuestionHandlers): unknown {
  if (question.method === 'elicitation/create') return answer.elicit?.(question.params);
  if (question.method === 'sampling/createMessage') return answer.sample?.(question.params);
  return answer.listRoots?.();
}

/** The answer comes last: what comes before are notifications. */
function readLastEvent(text: string) {
  const lines = text.split('\n').filter((line) => line.startsWith('data: {'));
  return JSON.parse(lines.at(-1)?.slice('data: '.length) ?? 'null');
}
