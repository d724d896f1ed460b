// §26: guards: they inspect messages, and pass, change or refuse them.
import { failParams, failUpstream } from '../../errors/gateway-error.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { readExact, toNoted } from '../../platform/noted-json.ts';
import type { TraceContext } from '../../telemetry/tracing/tracing.ts';
import { isQuestionMethod, QUESTIONS } from '../catalog/client-requests.ts';
import { isJsonRpcError, type RequestId } from '../protocol/json-rpc.ts';
import type { ItemKind } from '../protocol/list-kinds.ts';

/** The points where guards can check messages: `on` in the configuration file (§26.1). */
export const GUARD_POINTS = [
  'tools/list',
  'tools/call',
  'tools/result',
  'prompts/list',
  'prompts/get',
  'prompts/result',
  'resources/list',
  'resources/read',
  'resources/result',
  'resources/subscribe',
  'skills/list',
  'completion/complete',
  'completion/result',
  'instructions',
  'sampling',
  'sampling/result',
  'elicitation',
  'elicitation/result',
  'roots',
  'roots/result',
  'notifications',
  'approval',
] as const;

export type GuardPoint = (typeof GUARD_POINTS)[number];

/** The guards in the configuration file. */
export interface GuardsConfig {
  /** In their order; absent without any. */
  readonly guards?: readonly GuardConfig[];
  /** `"guards": []`: explicitly none. */
  readonly meansNoGuards?: true;
}

export interface GuardConfig {
  readonly name: string;
  readonly on: readonly GuardPoint[];
  /** Names of servers; undefined for all of them and the built-in catalogue. */
  readonly servers: readonly string[] | undefined;
  /** Globs for tool names at `/mcp`; undefined for all. Messages about anything but tools are always inspected. */
  readonly tools: readonly string[] | undefined;
  readonly use: GuardUse;
  readonly onError: 'refuse' | 'pass';
}

/** The guard in use; its kind defines further members. */
export interface GuardUse {
  readonly kind: string;
  /** The server that acts as the guard: hidden from clients. */
  readonly server?: string | undefined;
}

/** The subject of a message, as clients of `/mcp` see it. Guards are chosen by it. */
export interface GuardedItem {
  readonly kind: ItemKind | undefined;
  /** `''` for a server as a whole. */
  readonly name: string;
  /** `''` for the built-in catalogue. */
  readonly server: string;
}

/** The caller, as guards see it: never a token. */
interface GuardCaller {
  readonly user: UserContext | undefined;
  readonly clientId: string | undefined;
  readonly view: string | undefined;
  /** JSON-RPC id of the request. */
  readonly id: RequestId | undefined;
  readonly trace: TraceContext;
}

/** All guards of a configuration. */
export interface Guards {
  /**
   * The guards of an item at a point, in their order, as one; undefined without any, so nothing is parsed, kept or awaited.
   * Costs a look-up for an object seen before.
   */
  find(point: GuardPoint, item: GuardedItem): Guard | undefined;
  /** True if any guard checks this point. */
  looksAt(point: GuardPoint): boolean;
  /** In the order of the file. */
  listGuards(): readonly GuardFacts[];
}

/** Some guards as one. */
export interface Guard {
  /** Never rejects: a failing guard fails closed or open, by its `onError`. */
  judge(message: GuardedMessage): Promise<GuardVerdict>;
}

export interface GuardedMessage {
  /** Params of a request, a result, or `{"error": …}`: the JSON value to be relayed. Guards do not mutate it. */
  readonly value: unknown;
  /** Undefined for messages of no particular caller, such as shared lists. */
  readonly caller: GuardCaller | undefined;
  /** Aborted when the verdict is no longer needed. */
  readonly signal?: CancelSignal | undefined;
  /** The problem with a value that a guard returned as a replacement; the guard has failed if there is one. */
  findProblem?(changed: unknown): string | undefined;
}

export type GuardVerdict = (
  | { readonly kind: 'passed' }
  | { readonly kind: 'changed'; readonly value: unknown }
  /** `by` names the guard; `message` is for the caller. */
  | { readonly kind: 'refused'; readonly by: string; readonly message: string }
) & {
  /** Determined by `onError` of a failed guard: not to be cached. */
  readonly hasFailed?: true;
};

/** For operators. */
export interface GuardFacts {
  readonly name: string;
  /** Its kind, without secrets: `http guard.example.com`, `built in: secrets`. */
  readonly kind: string;
  readonly on: readonly GuardPoint[];
  readonly onError: 'refuse' | 'pass';
  /** Since the configuration was loaded. */
  readonly counts: Readonly<Record<GuardOutcome, number>>;
  /** The reason of its last failure; undefined once it has answered. */
  readonly problem: string | undefined;
  /** Probes it with an empty message: the reason of a failure; undefined if it answers. */
  check(): Promise<string | undefined>;
}

export type GuardOutcome = 'passed' | 'changed' | 'refused' | 'failed';

// §26: guards of messages during a call: server-initiated requests, their answers, notifications.

export interface Question {
  readonly method: string;
  readonly params: JsonObject;
}

/** The guards of one call. */
export interface QuestionGuards {
  /** The request to relay. @throws CallStopped if refused. */
  passQuestion(question: Question): Promise<Question>;
  /** The client's answer to relay. @throws CallStopped if refused. */
  passAnswer(method: string, answer: JsonObject): Promise<JsonObject>;
  looksAtAnswer(method: string): boolean;
}

/** The points of requests to the client, and of answers (`/result`). */
export const QUESTION_POINTS: readonly GuardPoint[] = Object.values(QUESTIONS).flatMap(
  (asked) => [asked, `${asked}/result`] as const,
);

/** Undefined if no guard checks requests to the client. */
export function createQuestionGuards(
  guards: Guards,
  /** Undefined if the item is unknown. */
  item: GuardedItem | undefined,
  caller: GuardCaller,
  signal: CancelSignal,
): QuestionGuards | undefined {
  if (!QUESTION_POINTS.some(guards.looksAt)) return undefined;

  function find(point: GuardPoint): Guard | undefined {
    if (item !== undefined) return guards.find(point, item);
    // Fails closed: the guard may apply to it.
    return guards.looksAt(point) ? REFUSE : undefined;
  }

  async function pass(point: GuardPoint, value: JsonObject): Promise<JsonObject> {
    const guard = find(point);
    if (guard === undefined) return value;
    const passed = await passGuard(guard, {
      value: readExact(value),
      caller,
      signal,
      findProblem: (changed) => findAskedProblem(point, changed),
    });
    return isObject(passed?.value) ? toNoted(passed.value) : value;
  }

  return {
    async passQuestion({ method, params }) {
      return {
        method,
        params: isQuestionMethod(method) ? await pass(QUESTIONS[method], params) : params,
      };
    },
    async passAnswer(method, answer) {
      return isQuestionMethod(method) ? pass(`${QUESTIONS[method]}/result`, answer) : answer;
    },
    looksAtAnswer: (method) =>
      isQuestionMethod(method) && find(`${QUESTIONS[method]}/result`) !== undefined,
  };
}

const REFUSE: Guard = {
  judge: async () => ({
    kind: 'refused',
    by: 'unknown',
    message: 'A guard looks at questions, and only tools, prompts and resources may ask.',
  }),
};

/** The requests of one tool to relay; unchanged without guards. @throws CallStopped */
export async function passQuestions(
  requests: Readonly<Record<string, { readonly method: string; readonly params: object }>>,
  guards: QuestionGuards | undefined,
): Promise<Readonly<Record<string, Question>>> {
  const passed: [string, Question][] = [];
  for (const [key, { method, params }] of Object.entries(requests)) {
    const question = { method, params: { ...params } };
    passed.push([key, guards === undefined ? question : await guards.passQuestion(question)]);
  }
  return Object.fromEntries(passed);
}

/** The answers to relay, by the same keys. @throws CallStopped; GatewayError `invalid_params` for an invalid answer. */
export async function passAnswers(
  requests: Readonly<Record<string, { readonly method: string }>>,
  received: JsonObject,
  guards: QuestionGuards | undefined,
): Promise<JsonObject> {
  if (guards === undefined) return received;
  const passed: [string, JsonObject][] = [];
  for (const [key, answer] of Object.entries(received)) {
    const method = requests[key]?.method;
    // Guards would not see anything else, but servers that run again would receive it.
    if (method === undefined || !isObject(answer))
      return failParams(`The client's answer "${key.slice(0, 100)}" must be an object`);
    passed.push([key, await guards.passAnswer(method, answer)]);
  }
  return Object.fromEntries(passed);
}

// Progress and log messages of a call with guards: in order, and before the answer.

export interface GuardedNotification {
  readonly method: string;
  readonly params: object;
}

export type NotificationGate = ReturnType<typeof createNotificationGate>;

/** Messages that wait for the guard; more are dropped, as they are for a client that reads too slowly. */
const MAX_WAITING = 100;

export function createNotificationGate(
  guard: Guard,
  caller: GuardCaller | undefined,
  pass: (message: GuardedNotification) => void,
) {
  let tail: Promise<void> = Promise.resolve();
  let waiting = 0;

  async function judge(message: GuardedNotification) {
    const { method } = message;
    const verdict = await guard.judge({
      value: message,
      caller,
      findProblem: (changed) =>
        isObject(changed) && changed.method === method && isObject(changed.params)
          ? undefined
          : 'it must have the same method, and params',
    });
    waiting -= 1;
    if (verdict.kind === 'passed') pass(message);
    if (verdict.kind !== 'changed' || !isObject(verdict.value)) return;
    const { params } = verdict.value;
    if (isObject(params)) pass({ method, params });
  }

  return {
    /** Relays it once the guard has passed it. */
    send(message: GuardedNotification) {
      if (waiting >= MAX_WAITING) return;
      waiting += 1;
      tail = tail.then(() => judge(message));
    },
    /** Resolves once all messages so far were relayed or dropped. */
    flush: () => tail,
  };
}

/** The changed value; undefined if the guard lets it pass. @throws CallStopped if it refuses. */
export async function passGuard(
  guard: Guard,
  message: GuardedMessage,
): Promise<{ readonly value: unknown } | undefined> {
  const verdict = await guard.judge(message);
  if (verdict.kind === 'refused') throw new CallStopped(`guard:${verdict.by}`, verdict.message);
  return verdict.kind === 'changed' ? verdict : undefined;
}

/** A guard or an approver stopped the call or its result; the message is for the client's model and its user. */
export class CallStopped extends Error {
  override readonly name = 'CallStopped';
  /** Names the guard or approver in the audit log. */
  readonly by: string;

  constructor(by: string, message: string) {
    super(message);
    this.by = by;
  }
}

/** As an error, for callers that expect no tool result. */
export const failStopped = ({ by, message }: CallStopped): never =>
  failUpstream(message, { facts: { deniedBy: by } });

/** Converts `CallStopped` to an error for the client. @throws always. */
export function rethrowStopped(thrown: unknown): never {
  throw thrown instanceof CallStopped ? failStopped(thrown) : thrown;
}

// §26.3: validates a guard's replacement for a message. Problems complete a sentence.

type FindProblem = (value: JsonObject) => string | undefined;

const isText = (value: unknown) => typeof value === 'string';
const isListOf =
  (isItem: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    Array.isArray(value) && value.every(isItem);

/** MCP "Content": further members and unknown types are allowed. */
const isContent = (value: unknown) => isObject(value) && isText(value.type);
const isMessage = (value: unknown) =>
  isObject(value) &&
  isText(value.role) &&
  (isContent(value.content) || isListOf(isContent)(value.content));

const need =
  (member: string, isRight: (value: unknown) => boolean, what: string): FindProblem =>
  (value) =>
    isRight(value[member]) ? undefined : `${member} must be ${what}`;

const RESULTS: Readonly<Record<ItemKind, FindProblem>> = {
  tool: (value) =>
    need('content', isListOf(isContent), 'a list of content, each with a type')(value) ??
    (value.isError === undefined || typeof value.isError === 'boolean'
      ? undefined
      : 'isError must be true or false'),
  prompt: need('messages', isListOf(isMessage), 'a list of messages, each with a role and content'),
  resource: need(
    'contents',
    isListOf((one) => isObject(one) && isText(one.uri) && (isText(one.text) || isText(one.blob))),
    'a list, each with a uri and a text or blob',
  ),
};

/** Checks a result, or `{"error": …}`. */
export function findResultProblem(kind: ItemKind, value: unknown): string | undefined {
  if (!isObject(value)) return NO_OBJECT;
  return 'error' in value ? findErrorProblem(value.error) : RESULTS[kind](value);
}

const NO_OBJECT = 'it must be an object';

export function findErrorProblem(error: unknown): string | undefined {
  return isJsonRpcError(error) ? undefined : 'error must have a code and a message';
}

export const findCompletionProblem = (value: unknown): string | undefined => {
  if (!isObject(value)) return NO_OBJECT;
  if ('error' in value) return findErrorProblem(value.error);
  return isObject(value.completion) && isListOf(isText)(value.completion.values)
    ? undefined
    : 'completion must have a list of values';
};

/** MCP "Elicitation", "Sampling", "Roots". */
const ASKED: Readonly<Partial<Record<GuardPoint, FindProblem>>> = {
  elicitation: (value) =>
    isText(value.message) && (isObject(value.requestedSchema) || isText(value.url))
      ? undefined
      : 'it must have a message, and a requestedSchema or url',
  'elicitation/result': need(
    'action',
    (action) => action === 'accept' || action === 'decline' || action === 'cancel',
    'accept, decline or cancel',
  ),
  sampling: (value) =>
    isListOf(isMessage)(value.messages) && Number.isInteger(value.maxTokens)
      ? undefined
      : 'it must have messages and maxTokens',
  'sampling/result': (value) =>
    isMessage(value) && isText(value.model)
      ? undefined
      : 'it must have a role, a model and content',
  'roots/result': need(
    'roots',
    isListOf((root) => isObject(root) && isText(root.uri)),
    'a list, each with a uri',
  ),
};

export const findAskedProblem = (point: GuardPoint, value: unknown): string | undefined =>
  isObject(value) ? ASKED[point]?.(value) : NO_OBJECT;
