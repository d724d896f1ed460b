// What goes over the wire in both eras, as far as the playground looks at it.
import { createParser } from 'eventsource-parser';
import type { Answer } from './exchange.ts';
import { isObject, type JsonObject, parseObject, readText } from './json.ts';

export type Era = 'session' | 'stateless';

/** A question that a tool asks while it runs, and how the user answers it. */
export interface Question {
  readonly message: string;
  /** JSON Schema of the form. */
  readonly schema: JsonObject;
}

export interface QuestionAnswer {
  readonly action: 'accept' | 'decline' | 'cancel';
  readonly content?: JsonObject;
}

/** What a call tells while it runs. */
export interface CallListener {
  progress(progress: Progress): void;
  log(line: LogLine): void;
  ask(question: Question): Promise<QuestionAnswer>;
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

/** Undefined for what is no form: the playground cannot answer it. */
export function readQuestion(method: unknown, params: unknown): Question | undefined {
  if (method !== 'elicitation/create' || !isObject(params)) return undefined;
  return isObject(params.requestedSchema)
    ? { message: readText(params, 'message') ?? '', schema: params.requestedSchema }
    : undefined;
}
