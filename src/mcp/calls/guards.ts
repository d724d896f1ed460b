// §26: guards see what goes through the gateway, and let it pass, change it or refuse it.
import { failParams, failUpstream } from '../../errors/gateway-error.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { readExact, toNoted } from '../../platform/noted-json.ts';
import type { TraceContext } from '../../telemetry/tracing/tracing.ts';
import { isQuestionMethod, QUESTIONS } from '../catalog/client-requests.ts';
import type { RequestId } from '../protocol/json-rpc.ts';
import type { ItemKind } from '../protocol/list-kinds.ts';

/** The points that a guard can look at, as `on` in the configuration file names it (§26.1). */
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

/** The part of the file about who looks at what goes through. */
export interface GuardsConfig {
  /** In their order; left out where there are none. */
  readonly guards?: readonly GuardConfig[];
  /** `"guards": []`: that there are none is meant. */
  readonly meansNoGuards?: true;
}

export interface GuardConfig {
  readonly name: string;
  readonly on: readonly GuardPoint[];
  /** Names of servers; undefined for all, and the built-in catalogue. */
  readonly servers: readonly string[] | undefined;
  /** Globs over names of tools as at `/mcp`; undefined for all. What is about no tool is looked at whatever it says. */
  readonly tools: readonly string[] | undefined;
  readonly use: GuardUse;
  readonly onError: 'refuse' | 'pass';
}

/** Which guard it is. Its kind knows what else belongs to it. */
export interface GuardUse {
  readonly kind: string;
  /** A server of the file that is asked: no client sees it. */
  readonly server?: string | undefined;
}

/** The subject of a message: of a server, and as clients of `/mcp` see it. Guards are chosen by it. */
export interface GuardedItem {
  readonly kind: ItemKind | undefined;
  /** `''` where it is about a server as a whole. */
  readonly name: string;
  /** `''` for the built-in catalogue. */
  readonly server: string;
}

/** The caller. A guard is told who it is, never a token. */
export interface GuardCaller {
  readonly user: UserContext | undefined;
  readonly clientId: string | undefined;
  readonly view: string | undefined;
  /** JSON-RPC id of the request. */
  readonly requestId: RequestId | undefined;
  readonly trace: TraceContext;
}

/** All guards of a configuration. */
export interface Guards {
  /**
   * Those that look at this, in their order, as one; undefined where none does: then nothing is parsed, kept or waited for.
   * Costs no more than a look-up for the same object.
   */
  find(point: GuardPoint, item: GuardedItem): Guard | undefined;
  /** True if some guard looks at this point, whatever it is about. */
  looksAt(point: GuardPoint): boolean;
  /** In the order of the file. */
  listGuards(): readonly GuardFacts[];
}

/** Some guards as one. */
export interface Guard {
  /** Never rejects: a guard that fails refuses, or lets pass, as its `onError` says. */
  judge(message: GuardedMessage): Promise<GuardVerdict>;
}

export interface GuardedMessage {
  /** Params of a request, a result, or `{"error": …}`: a JSON value, as it would go on. It is not changed. */
  readonly value: unknown;
  /** Undefined for what concerns nobody in particular, such as lists that all callers share. */
  readonly caller: GuardCaller | undefined;
  /** Aborted when nobody waits for the verdict any more. */
  readonly signal?: CancelSignal | undefined;
  /** Says what is wrong with a value that a guard put in its place: then that guard has failed. */
  findProblem?(changed: unknown): string | undefined;
}

export type GuardVerdict = (
  | { readonly kind: 'passed' }
  | { readonly kind: 'changed'; readonly value: unknown }
  /** `by` names the guard; `message` is its word to the caller. */
  | { readonly kind: 'refused'; readonly by: string; readonly message: string }
) & {
  /** A guard could not say it, and its `onError` did: not to be remembered. */
  readonly hasFailed?: true;
};

/** For operators. */
export interface GuardFacts {
  readonly name: string;
  /** Its kind, in a few words without a secret: `http guard.example.com`, `built in: secrets`. */
  readonly kind: string;
  readonly on: readonly GuardPoint[];
  readonly onError: 'refuse' | 'pass';
  /** Since the configuration was loaded. */
  readonly counts: Readonly<Record<GuardOutcome, number>>;
  /** Why it failed last; undefined where it never did, or has answered since. */
  readonly problem: string | undefined;
  /** Asks it once, about nothing: why it cannot be asked; undefined where it answers. */
  check(): Promise<string | undefined>;
}

export type GuardOutcome = 'passed' | 'changed' | 'refused' | 'failed';

// §26: guards of messages while a call goes on: questions to its client, answers, notifications.

export interface Question {
  readonly method: string;
  readonly params: JsonObject;
}

/** For one call. */
export interface QuestionGuards {
  /** The question as it goes on. @throws CallStopped where it does not. */
  passQuestion(question: Question): Promise<Question>;
  /** The client's answer to a question of that method. @throws CallStopped where it does not go on. */
  passAnswer(method: string, answer: JsonObject): Promise<JsonObject>;
  looksAtAnswer(method: string): boolean;
}

/** Answers have the same points, with `/result`. */
export const QUESTION_POINTS: readonly GuardPoint[] = Object.values(QUESTIONS).flatMap(
  (asked) => [asked, `${asked}/result`] as const,
);

/** Undefined where no guard looks at questions: then they are not looked at. */
export function createQuestionGuards(
  guards: Guards,
  /** Undefined where it is not known what the call is about. */
  item: GuardedItem | undefined,
  caller: GuardCaller,
  signal: CancelSignal,
): QuestionGuards | undefined {
  if (!QUESTION_POINTS.some(guards.looksAt)) return undefined;

  function find(point: GuardPoint): Guard | undefined {
    if (item !== undefined) return guards.find(point, item);
    // A question of which nobody can tell whether a guard is about it does not go on.
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

/** All questions of one author's tool at once, as they go on; without guards all do. @throws CallStopped */
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

/** Passes answers to them, by the same keys. @throws CallStopped; GatewayError `invalid_params` for what is no answer. */
export async function passAnswers(
  requests: Readonly<Record<string, { readonly method: string }>>,
  received: JsonObject,
  guards: QuestionGuards | undefined,
): Promise<JsonObject> {
  if (guards === undefined) return received;
  const passed: [string, JsonObject][] = [];
  for (const [key, answer] of Object.entries(received)) {
    const method = requests[key]?.method;
    // No guard looks at anything else, and servers that are asked again would get it.
    if (method === undefined || !isObject(answer))
      return failParams(`The client's answer "${key.slice(0, 100)}" must be an object`);
    passed.push([key, await guards.passAnswer(method, answer)]);
  }
  return Object.fromEntries(passed);
}

// Progress and log messages of a call, where guards look at them: in their order, and before the answer.

export interface GuardedNotification {
  readonly method: string;
  readonly params: object;
}

export type NotificationGate = ReturnType<typeof createNotificationGate>;

/** That wait for the guard; more are dropped, as for a client that reads too slowly. */
const MAX_WAITING = 100;

export function createNotificationGate(
  guard: Guard,
  caller: GuardCaller | undefined,
  pass: (message: GuardedNotification) => void,
) {
  let tail: Promise<void> = Promise.resolve();
  let waiting = 0;

  async function judge(message: GuardedNotification): Promise<void> {
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
    /** Passes it on once the guard has. */
    send(message: GuardedNotification) {
      if (waiting >= MAX_WAITING) return;
      waiting += 1;
      tail = tail.then(() => judge(message));
    },
    /** Resolves once all that came before was passed on, or not. */
    flush: () => tail,
  };
}

/** Returns what the guard puts in place of the value; undefined where it lets it pass. @throws CallStopped where it refuses. */
export async function passGuard(
  guard: Guard,
  message: GuardedMessage,
): Promise<{ readonly value: unknown } | undefined> {
  const verdict = await guard.judge(message);
  if (verdict.kind === 'refused') throw new CallStopped(`guard:${verdict.by}`, verdict.message);
  return verdict.kind === 'changed' ? verdict : undefined;
}

/** Derived from what is known of a call. */
export const toGuardCaller = ({
  id: requestId,
  user,
  clientId,
  view,
  trace,
}: Omit<GuardCaller, 'requestId'> & { readonly id: RequestId | undefined }): GuardCaller => ({
  user,
  clientId,
  view,
  requestId,
  trace,
});

/** The call was not made, or its result is not passed on; the message is for the client's model and its user. */
export class CallStopped extends Error {
  override readonly name = 'CallStopped';
  /** The name in the audit log of what stopped it. */
  readonly by: string;

  constructor(by: string, message: string) {
    super(message);
    this.by = by;
  }
}

/** As an error, for whoever gets no result that says so. */
export const failStopped = ({ by, message }: CallStopped): never =>
  failUpstream(message, { facts: { deniedBy: by } });

/** What a guard stopped, as an error that says so; anything else as it is. @throws always. */
export function rethrowStopped(thrown: unknown): never {
  throw thrown instanceof CallStopped ? failStopped(thrown) : thrown;
}

// §26.3: a guard that puts something in place of a message has to put a message there. Problems are the rest of a sentence.

type FindProblem = (value: JsonObject) => string | undefined;

const isText = (value: unknown): boolean => typeof value === 'string';
const isListOf =
  (isItem: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    Array.isArray(value) && value.every(isItem);

/** MCP "Content": further members, and types that nobody knows yet, are its author's matter. */
const isContent = (value: unknown): boolean => isObject(value) && isText(value.type);
const isMessage = (value: unknown): boolean =>
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
  return isObject(error) && Number.isInteger(error.code) && isText(error.message)
    ? undefined
    : 'error must have a code and a message';
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
