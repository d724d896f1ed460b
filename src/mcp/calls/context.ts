// Call context: what a tool, prompt or resource can do in a call, the same in both eras.

import { isDeepStrictEqual } from 'node:util';
import { failParams } from '../../errors/gateway-error.ts';
import type { GetProviderToken, UserContext } from '../../http/endpoint/message.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Context, RelayedClient, ServiceInfo } from '../catalog/catalog.ts';
import type { Answers, ClientCapabilities, ClientRequests } from '../catalog/client-requests.ts';
import type {
  ApprovalRounds,
  CallerContext,
  RelayedTasks,
  Target,
  WantedItem,
} from '../catalog/served-catalog.ts';
import {
  isRequestId,
  isShortId,
  type RequestId,
  readCustomMeta,
  readMeta,
  readParams,
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
} from './guards.ts';
import type { AskWhom } from './policy.ts';

/** §29: continues a call as a task. */
export interface CallTask {
  /** Answers the client: from here on the call is a task. @throws GatewayError if there is no room for it. */
  begin(): Promise<void>;
  hasBegun(): boolean;
  /** §29.5: converts the server's answer for the client: a task gets one of the gateway's own ids. */
  adopt(tasks: RelayedTasks, server: string, result: object): object | Promise<object>;
  /** True for a handle that `adopt` created: a server may send something that looks like one. */
  isHandle(result: object): boolean;
  /** Receives a notification of a call that has become a task. */
  send(message: GuardedNotification): void;
}

/** The client of a call, as its era reaches it. */
export interface CallClient {
  capabilities(): ClientCapabilities;
  /** The least severe log message that it wants; undefined for none. */
  readonly logLevel: LogSeverity | undefined;
  /** `ask` of the context; `guards` check requests and answers (§26). */
  ask<const Requests extends ClientRequests>(
    requests: Requests,
    guards: QuestionGuards | undefined,
  ): Promise<Answers<Requests>>;
  /** For catalogues that pass calls on. */
  createRelayedClient(
    call: Pick<RelayedClient, 'wantsProgress' | 'signal' | 'meta' | 'questionGuards'> & {
      /** True if the method may ask the client. */
      readonly canAsk: boolean;
    },
  ): RelayedClient;
  /** True if the call ends with a request to the client, whatever its tool returns. Absent if calls never do. */
  isAsking?(): boolean;
  /** Undefined if the client does not support tasks. */
  readonly task?: CallTask | undefined;
  /** Undefined if calls never end with a request to the client. */
  readonly approvalRounds?: ApprovalRounds | undefined;
  /** Checks of the era, once the target is known and before it runs. @throws GatewayError */
  checkTarget?(call: Pick<ItemCall, 'target' | 'context' | 'args'>): Promise<void> | undefined;
}

/** Shared by the contexts of all calls. */
interface ContextServices {
  readonly service: ServiceInfo;
  readonly getProviderToken: GetProviderToken;
  /** Returns the guards of the current configuration; undefined without a configuration file. */
  readonly getGuards: (() => Guards | undefined) | undefined;
}

/** Passed to methods; authors see it as `Context`. */
export interface CallContext extends CallerContext {
  readonly task: CallTask | undefined;
  isAsking(): boolean;
  /** Resolves once all messages sent so far have passed the guards; undefined if none wait. */
  flush(): Promise<void> | undefined;
  /** The same call with a different `_meta` for the server. */
  withMeta(meta: JsonObject | undefined): CallContext;
}

/** A call to a tool, prompt or resource. Guards may change it; its final content is what runs. */
export interface ItemCall {
  target: Target;
  /** As the client named it, on the path of this catalogue. */
  readonly wanted: WantedItem;
  readonly catalog: Call['catalog'];
  readonly record: CallRecord;
  /** `{}` for a resource. */
  args: JsonObject;
  context: CallContext;
  ask: AskWhom | undefined;
  /** The message repeats a member: other parsers may read a different call. */
  isAmbiguous: boolean;
  /** It was in the arguments of another tool (§25.3). */
  readonly isNested: boolean;
}

/** The part of a call that its context uses. */
interface ContextSource
  extends Pick<Call, 'user' | 'session' | 'stream' | 'signal' | 'abortSignal' | 'message'>,
    Partial<Pick<Call, 'sentText'>> {
  readonly record: Pick<
    CallRecord,
    'id' | 'method' | 'trace' | 'user' | 'clientId' | 'view' | 'target'
  >;
}

/** Does not keep the params: calls may wait for minutes. @throws GatewayError `invalid_params` */
export function createContext(
  source: ContextSource,
  client: CallClient,
  services: ContextServices,
): CallContext {
  const meta = readMeta(readParams(source.message.params));
  const { progressToken } = meta;
  const token = isRequestId(progressToken) ? progressToken : undefined;
  if (token !== undefined && !isShortId(token))
    failParams('A progressToken may have at most 256 characters');
  return new ClientContext(
    new ClientAccess(source, client, services, token),
    readCustomMeta(meta, source.sentText),
  );
}

/** The way from a running call to its client. */
class ClientAccess {
  readonly source: ContextSource;
  readonly client: CallClient;
  readonly services: ContextServices;
  private readonly progressToken: RequestId | undefined;
  private askedKeys: Set<string> | undefined = undefined;
  private gate: NotificationGate | undefined = undefined;

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
    // For a task this is its status, requested or not.
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
    // MCP 2026-07-28 "Supported Requests"; other methods that ask would not be portable.
    if (this.source.record.method?.item === undefined)
      throw new Error('Only tools, prompts and resources may ask the client');
    this.askedKeys ??= new Set();
    for (const key of Object.keys(requests)) {
      // In the stateless era the second would receive the answer to the first.
      if (this.askedKeys.has(key))
        throw new Error(`"${key}" was used twice; each question needs its own key`);
      this.askedKeys.add(key);
    }
    return this.client.ask(requests, this.findQuestionGuards());
  }

  createRelayedClient(meta: JsonObject | undefined): RelayedClient {
    const { source, client, services } = this;
    return client.createRelayedClient({
      wantsProgress: source.stream.isAccepted && this.progressToken !== undefined,
      signal: source.signal(),
      meta,
      canAsk: source.record.method?.item !== undefined,
      questionGuards: services.getGuards?.() && this.findQuestionGuards(),
    });
  }

  flush(): Promise<void> | undefined {
    return this.gate?.flush();
  }

  private isTask() {
    return this.client.task?.hasBegun() === true;
  }

  private send(message: GuardedNotification) {
    const guards = this.services.getGuards?.();
    if (guards?.looksAt('notifications') !== true) {
      this.pass(message);
      return;
    }
    const { record, stream } = this.source;
    // Without a known target, as in a completion, it is unknown which guard checks it.
    const item = record.target?.item;
    if (item === undefined || !(stream.isAccepted || this.isTask())) return;
    const guard = guards.find('notifications', item);
    if (guard === undefined) {
      this.pass(message);
      return;
    }
    this.gate ??= createNotificationGate(guard, record, (passed) => this.pass(passed));
    this.gate.send(message);
  }

  private pass(message: GuardedNotification) {
    const { task } = this.client;
    if (task?.hasBegun() === true) task.send(message);
    else this.source.stream.send(message);
  }

  private findQuestionGuards(): QuestionGuards | undefined {
    const guards = this.services.getGuards?.();
    const { source } = this;
    const { target, id, user, clientId, view, trace } = source.record;
    // A suspended call keeps its guards: with the record they would keep the request and its response.
    const caller = { id, user, clientId, view, trace };
    return guards && createQuestionGuards(guards, target?.item, caller, source.signal());
  }
}

/**
 * The context as authors see it. Its functions are bound when they are read, so that it can be destructured. All are on the
 * prototype: own functions and accessors took a kilobyte for each context, which outlived its call, and a quarter of the call's
 * CPU for their collection. No other part of the call can be reached from here.
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
  #relay: RelayedClient | undefined;

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

  /** Authors' catalogues may pass on an object whose prototype is the context. */
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
      // A tool may await it later, or never: an unhandled rejection would end the process.
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

  get relay(): RelayedClient {
    const context = ClientContext.#find(this);
    context.#relay ??= context.#access.createRelayedClient(context.#meta);
    return context.#relay;
  }

  get takesStream(): boolean {
    const { stream } = ClientContext.#find(this).#access.source;
    return stream.isAccepted && stream.isStreamableRevision;
  }

  get approvalRounds(): ApprovalRounds | undefined {
    return this.#access.client.approvalRounds;
  }

  get task(): CallTask | undefined {
    return this.#access.client.task;
  }

  isAsking(): boolean {
    return this.#access.client.isAsking?.() === true;
  }

  flush(): Promise<void> | undefined {
    return this.#access.flush();
  }

  withMeta(meta: JsonObject | undefined): CallContext {
    return isDeepStrictEqual(this.#meta, meta) ? this : new ClientContext(this.#access, meta);
  }
}
