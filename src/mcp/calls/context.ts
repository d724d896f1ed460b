// What a tool, prompt or resource gets of one call, whatever the era.

import type { GetProviderToken, UserContext } from '../../endpoint/message.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { GuardCaller, GuardedItem, Guards } from '../../policy/guards/guards.ts';
import { isRequestId, isShortId, readForeignMeta, readMeta } from '../../protocol/json-rpc.ts';
import { isLessSevere, type LogSeverity } from '../../protocol/methods.ts';
import type { SessionLookup } from '../../store/store.ts';
import type { Relay, ServiceInfo } from '../catalog/catalog.ts';
import type { Answers, ClientCapabilities, ClientRequests } from '../catalog/client-requests.ts';
import type {
  ApprovalRounds,
  CallerContext,
  IdentifiedCaller,
  RelayedTasks,
  Target,
} from '../catalog/served-catalog.ts';
import {
  createNotificationGate,
  type GuardedNotification,
  type NotificationGate,
} from '../control/notification-gate.ts';
import { createQuestionGuards, type QuestionGuards } from '../control/question-guards.ts';
import type { ResponseStream } from '../streaming/response-stream.ts';
import type { CallRecord } from './call.ts';

/** §29: how a call goes on as a task. */
export interface CallTask {
  /** From here on the call is a task: its client has been answered. @throws GatewayError where there is no room for it. */
  begin(): Promise<void>;
  hasBegun(): boolean;
  /** §29.5: what the server of the target answered, as its client gets it: a task under an id of the gateway's. */
  adopt(tasks: RelayedTasks, server: string, result: object): object | Promise<object>;
  /** Whether it is what `adopt` made of a task of a server: a server may write what looks like one. */
  isHandle(result: object): boolean;
  /** What would be sent to the client before the answer. */
  send(message: GuardedNotification): void;
}

/** The client of a call, as its era reaches it. */
export interface CallClient {
  capabilities(): ClientCapabilities;
  /** Least severe log message that it wants; undefined for none. */
  readonly logLevel: LogSeverity | undefined;
  /** As the context's, where guards look at what is asked (§26). */
  ask<const Requests extends ClientRequests>(
    requests: Requests,
    guards: QuestionGuards | undefined,
  ): Promise<Answers<Requests>>;
  /** For catalogues that pass calls on. */
  createRelay(
    call: Pick<Relay, 'wantsProgress' | 'signal' | 'meta' | 'questionGuards'> &
      Pick<ContextOptions, 'canAsk'>,
  ): Relay;
  /** Whether the call ends with a question, whatever its tool returns. */
  isAsking(): boolean;
  /** Undefined where the client cannot have tasks. */
  readonly task?: CallTask | undefined;
  /** Undefined where calls do not end with questions. */
  readonly approvalRounds?: ApprovalRounds | undefined;
  /**
   * What the era asks of a call whose target is known, before it is made.
   *
   * @throws GatewayError where it is not so.
   */
  checkTarget?(
    target: Target,
    caller: IdentifiedCaller,
    args: JsonObject | undefined,
  ): Promise<void> | undefined;
}

export interface ContextOptions {
  readonly service: ServiceInfo;
  /** Whether the method may ask the client. */
  readonly canAsk: boolean;
  readonly params: unknown;
  /** OAuth client ID, where it is known. */
  readonly clientId: string | undefined;
  readonly getProviderToken: GetProviderToken;
  /** Those of the configuration as it is now; undefined where it has none. */
  getGuards(): Guards | undefined;
}

/** What the methods get; authors see the Context in it. */
export interface CallContext extends CallerContext {
  readonly task: CallTask | undefined;
  isAsking(): boolean;
  /** Resolves once what was sent to the client so far has passed the guards; undefined where it waits for none. */
  flush(): Promise<void> | undefined;
}

/** What of a call reaches its tool. */
export interface ContextSource {
  readonly user: UserContext | undefined;
  readonly session: SessionLookup;
  readonly record: Pick<CallRecord, 'id' | 'trace' | 'view' | 'target'>;
  readonly stream: ResponseStream;
  signal(): CancelSignal;
  abortSignal(): AbortSignal;
}

export function createContext(
  { user, session, record, stream, signal, abortSignal }: ContextSource,
  { capabilities, logLevel, ask, createRelay, isAsking, approvalRounds, task }: CallClient,
  { service, canAsk, params, clientId, getProviderToken, getGuards }: ContextOptions,
): CallContext {
  // The params are not kept: a call that waits keeps what its tool has of them.
  const meta = readMeta(params);
  let askedKeys: Set<string> | undefined;
  let relay: Relay | undefined;
  let gate: NotificationGate | undefined;
  const { progressToken } = meta;
  const foreignMeta = readForeignMeta(meta);
  if (isRequestId(progressToken) && !isShortId(progressToken)) {
    fail('invalid_params', { details: 'A progressToken may have at most 256 characters' });
  }

  const toGuardCaller = (): GuardCaller => ({
    user,
    clientId,
    view: record.view,
    requestId: record.id,
    trace: record.trace,
  });

  const findQuestionGuards = () =>
    createQuestionGuards(getGuards(), record.target?.item, toGuardCaller(), signal());

  const isTask = () => task?.hasBegun() === true;

  const pass = (message: GuardedNotification): void => {
    if (task?.hasBegun() === true) task.send(message);
    else stream.send(message);
  };

  function send(message: GuardedNotification): void {
    const guards = getGuards();
    if (guards === undefined || !guards.looksAt('notifications')) {
      pass(message);
      return;
    }
    // Where it is not known what the call is about, as of a completion, nobody can tell who looks at it.
    const item: GuardedItem | undefined = record.target?.item;
    if (item === undefined || !(stream.isAccepted || isTask())) return;
    const guard = guards.find('notifications', item);
    if (guard === undefined) {
      pass(message);
      return;
    }
    gate ??= createNotificationGate(guard, toGuardCaller(), pass);
    gate.send(message);
  }

  async function askOnce<const Requests extends ClientRequests>(
    requests: Requests,
  ): Promise<Answers<Requests>> {
    // MCP 2026-07-28 "Supported Requests"; a list or a completion that asks would not be portable.
    if (!canAsk) {
      throw new Error('Only tools, prompts and resources may ask the client');
    }
    askedKeys ??= new Set();
    for (const key of Object.keys(requests)) {
      // In the stateless era the second would get the answer to the first.
      if (askedKeys.has(key)) {
        throw new Error(`"${key}" was asked twice; each question needs a key of its own`);
      }
      askedKeys.add(key);
    }
    return ask(requests, findQuestionGuards());
  }

  const context = {
    __proto__: MADE_ON_USE,
    getCapabilities: capabilities,
    getSignal: abortSignal,
    getProviderToken,
    getRelay() {
      const wantsProgress = stream.isAccepted && isRequestId(progressToken);
      relay ??= createRelay({
        wantsProgress,
        signal: signal(),
        meta: foreignMeta,
        canAsk,
        questionGuards: findQuestionGuards(),
      });
      return relay;
    },
    user,
    session: 'record' in session ? session.record : undefined,
    service,
    ask(requests: ClientRequests) {
      const answers = askOnce(requests);
      // A tool may look at it later, or never: that must not end the process.
      answers.catch(() => {});
      return answers;
    },
    isAsking,
    approvalRounds,
    task,
    flush: () => gate?.flush(),
    disconnect: stream.disconnect,
    trace: record.trace,
    clientId,
    view: record.view,
    progress(done: number, total?: number, message?: string) {
      // Of a task it is the status, whether it was asked for or not.
      if (!isRequestId(progressToken) && !isTask()) return;
      const progressParams = { progressToken, progress: done, total, message };
      send({ method: 'notifications/progress', params: progressParams });
    },
    log(level: LogSeverity, data: unknown, logger?: string) {
      if (logLevel === undefined || isLessSevere(level, logLevel)) return;
      send({ method: 'notifications/message', params: { level, logger, data } });
    },
  };
  // The compiler does not know that members of the prototype are there.
  return context as unknown as CallContext;
}

/**
 * What is made when a tool looks at it. On a prototype that all calls share: with accessors of their
 * own they outlived their calls, and collecting them was a quarter of a call's work.
 */
const MADE_ON_USE: Pick<CallContext, 'client' | 'signal' | 'relay' | 'providerToken'> &
  ThisType<Getters> = {
  get client() {
    return this.getCapabilities();
  },
  get signal() {
    return this.getSignal();
  },
  get relay() {
    return this.getRelay();
  },
  providerToken() {
    return this.user === undefined ? Promise.resolve(undefined) : this.getProviderToken(this.user);
  },
};

interface Getters {
  getCapabilities(): ClientCapabilities;
  getSignal(): AbortSignal;
  getRelay(): Relay;
  readonly getProviderToken: GetProviderToken;
  readonly user: UserContext | undefined;
}
