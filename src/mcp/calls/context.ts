// The context that a tool, prompt or resource gets of one call, whatever the era.

import { isDeepStrictEqual } from 'node:util';
import { failParams } from '../../errors/gateway-error.ts';
import type { GetProviderToken, UserContext } from '../../http/endpoint/message.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Context, Relay, ServiceInfo } from '../catalog/catalog.ts';
import type { Answers, ClientCapabilities, ClientRequests } from '../catalog/client-requests.ts';
import type {
  ApprovalRounds,
  CallerContext,
  IdentifiedCaller,
  RelayedTasks,
  Target,
} from '../catalog/served-catalog.ts';
import {
  isRequestId,
  isShortId,
  type RequestId,
  readForeignMeta,
  readMeta,
} from '../protocol/json-rpc.ts';
import { isLessSevere, type LogSeverity } from '../protocol/methods.ts';
import type { Call, CallRecord } from './call.ts';
import {
  createNotificationGate,
  createQuestionGuards,
  type GuardedNotification,
  type Guards,
  type NotificationGate,
  type QuestionGuards,
  toGuardCaller,
} from './guards.ts';

/** §29: how a call goes on as a task. */
export interface CallTask {
  /** From here on the call is a task: its client has been answered. @throws GatewayError where there is no room for it. */
  begin(): Promise<void>;
  hasBegun(): boolean;
  /** §29.5: what the server of the target answered, as its client gets it: a task under an id of the gateway's. */
  adopt(tasks: RelayedTasks, server: string, result: object): object | Promise<object>;
  /** True if it is what `adopt` made of a task of a server: a server may write what looks like one. */
  isHandle(result: object): boolean;
  /** In place of sending it to the client before the answer. */
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
    call: Pick<Relay, 'wantsProgress' | 'signal' | 'meta' | 'questionGuards'> & {
      /** True if the method may ask the client. */
      readonly canAsk: boolean;
    },
  ): Relay;
  /** True if the call ends with a question, whatever its tool returns. */
  isAsking(): boolean;
  /** Undefined where the client cannot have tasks. */
  readonly task?: CallTask | undefined;
  /** Undefined where calls do not end with questions. */
  readonly approvalRounds?: ApprovalRounds | undefined;
  readonly checkTarget?: CheckTarget | undefined;
}

/**
 * A check of the era, once the target of a call is known and before it is made.
 *
 * @throws GatewayError where it is not so.
 */
export type CheckTarget = (
  target: Target,
  caller: IdentifiedCaller,
  args: JsonObject | undefined,
) => Promise<void> | undefined;

/** The same for the contexts of all calls. */
interface ContextServices {
  readonly service: ServiceInfo;
  readonly getProviderToken: GetProviderToken;
  /** Those of the configuration as it is now; undefined where it has none. */
  getGuards(): Guards | undefined;
}

/** Given to the methods; authors see the Context in it. */
export interface CallContext extends CallerContext {
  readonly task: CallTask | undefined;
  isAsking(): boolean;
  /** Resolves once what was sent to the client so far has passed the guards; undefined where it waits for none. */
  flush(): Promise<void> | undefined;
  /** The same call, of which whoever answers it is told another `_meta`. */
  withMeta(meta: JsonObject | undefined): CallContext;
}

/** The part of a call that reaches its tool. */
interface ContextSource
  extends Pick<Call, 'user' | 'session' | 'stream' | 'signal' | 'abortSignal'>,
    Partial<Pick<Call, 'sentText'>> {
  readonly record: Pick<
    CallRecord,
    'id' | 'method' | 'trace' | 'user' | 'clientId' | 'view' | 'target'
  >;
}

/** The params are not kept: a call that waits keeps what its tool has of them. */
export function createContext(
  source: ContextSource,
  client: CallClient,
  services: ContextServices,
  params: unknown,
): CallContext {
  const meta = readMeta(params);
  const { progressToken } = meta;
  const token = isRequestId(progressToken) ? progressToken : undefined;
  if (token !== undefined && !isShortId(token))
    failParams('A progressToken may have at most 256 characters');
  return new ClientContext(
    new ClientAccess(source, client, services, token),
    readForeignMeta(meta, source.sentText),
  );
}

/** The way from a call to its client while it runs. */
class ClientAccess {
  readonly source: ContextSource;
  readonly client: CallClient;
  readonly services: ContextServices;
  private readonly progressToken: RequestId | undefined;
  private askedKeys: Set<string> | undefined;
  private gate: NotificationGate | undefined;

  constructor(
    source: ContextSource,
    client: CallClient,
    services: ContextServices,
    progressToken: RequestId | undefined,
  ) {
    this.source = source;
    this.client = client;
    this.services = services;
    this.progressToken = progressToken;
  }

  progress(done: number, total?: number, message?: string): void {
    const { progressToken } = this;
    // For a task it is the status, whether it was asked for or not.
    if (progressToken === undefined && !this.isTask()) return;
    const params = { progressToken, progress: done, total, message };
    this.send({ method: 'notifications/progress', params });
  }

  log(level: LogSeverity, data: unknown, logger?: string): void {
    const { logLevel } = this.client;
    if (logLevel === undefined || isLessSevere(level, logLevel)) return;
    this.send({ method: 'notifications/message', params: { level, logger, data } });
  }

  async ask<const Requests extends ClientRequests>(requests: Requests): Promise<Answers<Requests>> {
    // MCP 2026-07-28 "Supported Requests"; a list or a completion that asks would not be portable.
    if (!this.canAsk()) throw new Error('Only tools, prompts and resources may ask the client');
    this.askedKeys ??= new Set();
    for (const key of Object.keys(requests)) {
      // In the stateless era the second would get the answer to the first.
      if (this.askedKeys.has(key))
        throw new Error(`"${key}" was asked twice; each question needs a key of its own`);
      this.askedKeys.add(key);
    }
    return this.client.ask(requests, this.findQuestionGuards());
  }

  createRelay(meta: JsonObject | undefined): Relay {
    return this.client.createRelay({
      wantsProgress: this.source.stream.isAccepted && this.progressToken !== undefined,
      signal: this.source.signal(),
      meta,
      canAsk: this.canAsk(),
      questionGuards: this.findQuestionGuards(),
    });
  }

  flush(): Promise<void> | undefined {
    return this.gate?.flush();
  }

  private canAsk(): boolean {
    return this.source.record.method?.item !== undefined;
  }

  private isTask(): boolean {
    return this.client.task?.hasBegun() === true;
  }

  private send(message: GuardedNotification): void {
    const guards = this.services.getGuards();
    if (guards?.looksAt('notifications') !== true) {
      this.pass(message);
      return;
    }
    const { record, stream } = this.source;
    // Without a known target, as in a completion, nobody can tell which guard looks at it.
    const item = record.target?.item;
    if (item === undefined || !(stream.isAccepted || this.isTask())) return;
    const guard = guards.find('notifications', item);
    if (guard === undefined) {
      this.pass(message);
      return;
    }
    this.gate ??= createNotificationGate(guard, toGuardCaller(record), (passed) =>
      this.pass(passed),
    );
    this.gate.send(message);
  }

  private pass(message: GuardedNotification): void {
    const { task } = this.client;
    if (task?.hasBegun() === true) task.send(message);
    else this.source.stream.send(message);
  }

  private findQuestionGuards(): QuestionGuards | undefined {
    const guards = this.services.getGuards();
    const { source } = this;
    const { record } = source;
    return (
      guards &&
      createQuestionGuards(guards, record.target?.item, toGuardCaller(record), source.signal())
    );
  }
}

/**
 * Members that authors see are either at hand or made when they are looked at, bound to its call, so that it can be destructured. All of
 * it is on the prototype: as functions and accessors of its own, each context had a kilobyte more and outlived its call,
 * and collecting them was a quarter of a call's work. Nothing else of the call can be reached from here.
 */
class ClientContext implements CallContext {
  readonly user: UserContext | undefined;
  readonly session: CallContext['session'];
  readonly service: ServiceInfo;
  readonly trace: CallContext['trace'];
  readonly clientId: string | undefined;
  readonly view: string | undefined;
  readonly #access: ClientAccess;
  readonly #meta: JsonObject | undefined;
  #relay: Relay | undefined;

  constructor(access: ClientAccess, meta: JsonObject | undefined) {
    const { user, session, record } = access.source;
    this.user = user;
    this.session = 'record' in session ? session.record : undefined;
    this.service = access.services.service;
    this.trace = record.trace;
    this.clientId = record.clientId;
    this.view = record.view;
    this.#access = access;
    this.#meta = meta;
  }

  /** Authors' catalogues may pass on an object that has it as its prototype, with some members of their own. */
  static #find(made: object): ClientContext {
    let context = made;
    while (!(#access in context)) context = Object.getPrototypeOf(context);
    return context;
  }

  get client(): ClientCapabilities {
    return ClientContext.#find(this).#access.client.capabilities();
  }

  get signal(): AbortSignal {
    return ClientContext.#find(this).#access.source.abortSignal();
  }

  get progress(): Context['progress'] {
    const access = ClientContext.#find(this).#access;
    return (done, total, message) => access.progress(done, total, message);
  }

  get log(): Context['log'] {
    const access = ClientContext.#find(this).#access;
    return (level, data, logger) => access.log(level, data, logger);
  }

  get ask(): Context['ask'] {
    const access = ClientContext.#find(this).#access;
    return (requests) => {
      const answers = access.ask(requests);
      // A tool may look at it later, or never: that must not end the process.
      answers.catch(() => {});
      return answers;
    };
  }

  get disconnect(): Context['disconnect'] {
    const { stream } = ClientContext.#find(this).#access.source;
    return () => stream.disconnect();
  }

  get providerToken(): Context['providerToken'] {
    const { user } = this;
    const { getProviderToken } = ClientContext.#find(this).#access.services;
    return () => (user === undefined ? Promise.resolve(undefined) : getProviderToken(user));
  }

  get relay(): Relay {
    const context = ClientContext.#find(this);
    context.#relay ??= context.#access.createRelay(context.#meta);
    return context.#relay;
  }

  get takesStream(): boolean {
    const { stream } = ClientContext.#find(this).#access.source;
    return stream.isAccepted && stream.mayBegin;
  }

  get approvalRounds(): ApprovalRounds | undefined {
    return this.#access.client.approvalRounds;
  }

  get task(): CallTask | undefined {
    return this.#access.client.task;
  }

  isAsking(): boolean {
    return this.#access.client.isAsking();
  }

  flush(): Promise<void> | undefined {
    return this.#access.flush();
  }

  withMeta(meta: JsonObject | undefined): CallContext {
    return isDeepStrictEqual(this.#meta, meta) ? this : new ClientContext(this.#access, meta);
  }
}
