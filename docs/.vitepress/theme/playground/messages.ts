// What goes over the wire in both eras, as far as the playground looks at it.
import { createParser } from 'eventsource-parser';
import type { Answer } from './exchange.ts';
import { isObject, type JsonObject, parseObject, readText } from './json.ts';

export type Era = 'session' | 'stateless';

/** What a server asks a person while it works. */
export type Question = FormQuestion | SampleQuestion;

/** Elicitation: to fill in a form. */
export interface FormQuestion {
  readonly kind: 'form';
  readonly message: string;
  /** JSON Schema of the form. */
  readonly schema: JsonObject;
}

/** Sampling: to go on with a conversation, in place of the model that other clients have. */
export interface SampleQuestion {
  readonly kind: 'sample';
  readonly messages: readonly JsonObject[];
  readonly systemPrompt: string | undefined;
  /** How long the answer may be. */
  readonly maxTokens: number | undefined;
}

/** What a call tells, and asks, while it runs. */
export interface CallListener {
  progress(progress: Progress): void;
  log(line: LogLine): void;
  /** The result of the request that asks; undefined where nobody answers it. */
  ask(question: Question): Promise<JsonObject | undefined>;
  listRoots(): readonly string[];
}

export interface Progress {
  readonly done: number;
  readonly total: number | undefined;
  readonly message: string | undefined;
}

export interface LogLine {
  readonly level: string;
  readonly text: string;
}

/** The gateway's refusal, or a tool's. */
export class CallError extends Error {
  override readonly name = 'CallError';
  readonly status: number;
  /** `data.reason` of the error. */
  readonly reason: string | undefined;

  constructor(status: number, error: JsonObject) {
    const data = isObject(error.data) ? error.data : undefined;
    const message = readText(error, 'message') ?? 'The call failed';
    const details = readText(data, 'details');
    super(details === undefined ? message : `${message}: ${details}`);
    this.status = status;
    this.reason = readText(data, 'reason');
  }
}

/** The messages of an answer: one of JSON, or those of a stream as they come. */
export async function* readMessages(answer: Answer): AsyncGenerator<JsonObject> {
  const type = answer.headers.get('Content-Type') ?? '';
  if (!type.startsWith('text/event-stream')) {
    const message = parseObject(await answer.text());
    if (message !== undefined) yield message;
    return;
  }
  const arrived: JsonObject[] = [];
  const parser = createParser({
    onEvent({ data }) {
      const message = parseObject(data);
      if (message !== undefined) arrived.push(message);
    },
  });
  for await (const chunk of answer.chunks()) {
    parser.feed(chunk);
    yield* arrived.splice(0);
  }
}

/** Passes on what a notification tells. */
export function tellListener({ method, params }: JsonObject, listener: CallListener): void {
  if (!isObject(params)) return;
  if (method === 'notifications/progress' && typeof params.progress === 'number') {
    listener.progress({
      done: params.progress,
      total: typeof params.total === 'number' ? params.total : undefined,
      message: readText(params, 'message'),
    });
  }
  if (method === 'notifications/message') {
    const { data } = params;
    listener.log({
      level: readText(params, 'level') ?? 'info',
      text: typeof data === 'string' ? data : JSON.stringify(data),
    });
  }
}

/** How the answer to a request of the server says that there is none. */
export const REFUSALS = {
  unknown: { code: -32601, message: 'The playground cannot answer this.' },
  declined: { code: -1, message: 'The user declined to answer.' },
} as const;

export type Reaction =
  | { readonly result: JsonObject }
  | { readonly error: (typeof REFUSALS)[keyof typeof REFUSALS] };

/** What comes of a request of the server. */
export async function react(
  method: unknown,
  params: unknown,
  listener: CallListener,
): Promise<Reaction> {
  if (method === 'roots/list') {
    return { result: { roots: listener.listRoots().map((uri) => ({ uri })) } };
  }
  const question = readQuestion(method, isObject(params) ? params : {});
  if (question === undefined) return { error: REFUSALS.unknown };
  const result = await listener.ask(question);
  return result === undefined ? { error: REFUSALS.declined } : { result };
}

/** Undefined for what no person can be asked. */
function readQuestion(method: unknown, params: JsonObject): Question | undefined {
  if (method === 'elicitation/create' && isObject(params.requestedSchema)) {
    const message = readText(params, 'message') ?? '';
    return { kind: 'form', message, schema: params.requestedSchema };
  }
  if (method === 'sampling/createMessage' && Array.isArray(params.messages)) {
    return {
      kind: 'sample',
      messages: params.messages.filter(isObject),
      systemPrompt: readText(params, 'systemPrompt'),
      maxTokens: typeof params.maxTokens === 'number' ? params.maxTokens : undefined,
    };
  }
  return undefined;
}
