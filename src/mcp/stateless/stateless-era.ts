// The stateless era, 2026-07-28: every request brings its version and what its client can do; no
// session, no requests to the client.
import type { GetProviderToken } from '../../endpoint/message.ts';
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import {
  addMembers,
  findWritten,
  isObject,
  isStringArray,
  type JsonObject,
  noteWritten,
} from '../../platform/json.ts';
import type { Guards } from '../../policy/guards/guards.ts';
import { TASKS } from '../../protocol/extensions.ts';
import { isShortId, type JsonRpcRequest, readParams } from '../../protocol/json-rpc.ts';
import { LIST_NAMES, type ListName } from '../../protocol/list-kinds.ts';
import { SUPPORTED_VERSIONS } from '../../protocol/revisions.ts';
import type { Call, CallRecord, EraHandler } from '../calls/call.ts';
import { type CallContext, createContext } from '../calls/context.ts';
import { failUnknownMethod, listCapabilities, type RunMethod } from '../calls/methods.ts';
import {
  ACCEPTED,
  type Answer,
  type MethodResult,
  type Outcome,
  type StreamResponse,
  toAnswer,
  toErrorAnswer,
} from '../calls/outcome.ts';
import type { FindClientId, RunCall } from '../calls/run-call.ts';
import type { CountCall } from '../calls/running-calls.ts';
import type { ServiceInfo } from '../catalog/catalog.ts';
import type { ClientCapabilities } from '../catalog/client-requests.ts';
import type { IdentifiedCaller } from '../catalog/served-catalog.ts';
import type {
  NotificationStreamOptions,
  NotificationStreams,
} from '../streaming/notification-streams.ts';
import type { TaskOffer, Tasks } from '../tasks/tasks.ts';
import { checkNameHeader, type Envelope, readEnvelope } from './envelope.ts';
import { type RequestState, type Round, startRound } from './multi-round-trip.ts';

export interface StatelessEraDeps {
  readonly runCall: RunCall;
  readonly countCall: CountCall;
  readonly findClientId: FindClientId;
  readonly requestState: RequestState;
  readonly tasks: Tasks;
  readonly notificationStreams: NotificationStreams;
  /** `MCP_STREAMS`: whether there are subscriptions. */
  readonly hasStreams: boolean;
  readonly service: ServiceInfo;
  readonly getProviderToken: GetProviderToken;
  /** Those of the configuration as it is now; undefined where it has none. */
  getGuards(): Guards | undefined;
}

/** Like the lists: new with a deploy. */
const DISCOVER_CACHE = { ttlMs: 60_000, scope: 'public' } as const;

export function createStatelessEra(deps: StatelessEraDeps): EraHandler {
  const { runCall, countCall, requestState, tasks, hasStreams, findClientId } = deps;
  const { name, version } = deps.service;
  const createServerInfo = (members: JsonObject) => ({
    'io.modelcontextprotocol/serverInfo': { name, version, ...members },
  });
  const serverInfo = createServerInfo({});
  const ownRuns: Readonly<Record<string, RunMethod>> = {
    'server/discover': discover,
    ...Object.fromEntries(
      Object.entries(tasks.methods).map(([method, run]) => [method, requireTasks(run)]),
    ),
  };
  const openSubscription = createOpenSubscription({ ...deps, serverInfo });

  return {
    accessSession: () => undefined,
    async handle(call, message) {
      if (message.kind === 'notification') return ACCEPTED;
      if (message.kind === 'response') {
        fail('invalid_request', {
          details: 'This service has sent no request that this could answer.',
        });
      }
      const { request, stream, record } = call;
      const envelope = readEnvelope(request, message, call.catalog.offers);
      const { method } = record;
      if (method === undefined) failUnknownMethod('unknown_method', message.method);
      if (method.name === 'subscriptions/listen') {
        if (!stream.isAccepted) fail('not_acceptable');
        return listen(call, message, envelope);
      }
      checkNameHeader(request, method, message.params);
      return stream.respond(answerCall(call, message, envelope).catch(toErrorAnswer));
    },
  };

  /** Until the stream is open it is a call like any other: what it names may be asked about at servers. */
  async function listen(
    call: Call,
    message: JsonRpcRequest,
    envelope: Envelope,
  ): Promise<StreamResponse> {
    const { user, catalog } = call;
    const { client } = envelope;
    const stopCounting = countCall(call);
    try {
      const clientId = await findClientId({ user });
      const caller = { user, session: undefined, client, clientId, view: catalog.view };
      const filter = readFilter(message.params);
      if (filter.taskIds.length > 0) checkDeclaresTasks(client);
      return await openSubscription(message, filter, call, caller, async (record) =>
        createContext(
          // Whoever asks for a task is not whoever waits for the answer of this call.
          { ...call, record },
          await startRound(call, message, envelope, requestState, undefined),
          { ...deps, canAsk: false, params: message.params, clientId },
        ),
      );
    } finally {
      stopCounting();
    }
  }

  /** Does not await the work: that would keep the request until it ends. */
  async function answerCall(
    call: Call,
    request: JsonRpcRequest,
    envelope: Envelope,
  ): Promise<Answer> {
    const task = mayBeTask(call, envelope.client) ? tasks.offer(call) : undefined;
    const round = await startRound(call, request, envelope, requestState, task);
    const work = runCall(call, round, request.params, ownRuns[request.method]);
    const info = nameServer(call.catalog);
    return task === undefined ? endRound(round, work, info) : answerOrGoOn(task, round, work, info);
  }

  /** §29: once the call goes on as a task, its end is the task's. */
  function answerOrGoOn(
    task: TaskOffer,
    round: Round,
    work: Promise<Outcome>,
    info: JsonObject,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      task.created.then((result) => resolve({ result: withServerInfo(result, info) }), reject);
      work.then((outcome) =>
        task.hasBegun() && outcome.kind !== 'asked'
          ? task.end(toAnswer(outcome, true, ({ result }) => ({ ...COMPLETE, ...result })))
          : endRound(round, work, info).then(resolve, reject),
      );
    });
  }

  async function endRound(round: Round, work: Promise<Outcome>, info: JsonObject): Promise<Answer> {
    const outcome = await work;
    if (outcome.kind !== 'asked')
      return toAnswer(outcome, true, (result) => showResult(result, info));
    return { result: withServerInfo(await round.createInputRequired(), info) };
  }

  function showResult({ result, cache }: MethodResult, info: JsonObject): JsonObject {
    const hint = cache && { ttlMs: cache.ttlMs, cacheScope: cache.scope };
    const shown = withServerInfo({ ...COMPLETE, ...result, ...hint }, info);
    // As it is written it goes on, between what is added.
    const written = isAddedTo(result) ? findWritten(result) : undefined;
    const complete = written && addMembers(written, COMPLETE, { ...hint, _meta: info });
    if (complete !== undefined) noteWritten(shown, complete);
    return shown;
  }

  /** Every result says whose it is. */
  function withServerInfo(result: JsonObject, info: JsonObject): JsonObject {
    const { _meta: meta } = result;
    return { ...result, _meta: isObject(meta) ? { ...meta, ...info } : info };
  }

  /** A view (§25.1) has a title of its own. */
  function nameServer({ title }: Pick<Call['catalog'], 'title'>): JsonObject {
    return title === undefined ? serverInfo : createServerInfo({ title });
  }

  async function discover(...[, context, { catalog }]: Parameters<RunMethod>) {
    const description = await catalog.describe(context);
    const { instructions } = description;
    const result = {
      supportedVersions: SUPPORTED_VERSIONS,
      capabilities: listCapabilities(description, hasStreams, 'stateless'),
      ...(instructions !== undefined && { instructions }),
    };
    return { result, cache: catalog.isShared ? DISCOVER_CACHE : NOT_SHARED };
  }
}

const mayBeTask = ({ record, catalog }: Call, client: ClientCapabilities): boolean =>
  record.method?.item?.kind === 'tool' && catalog.offers.tasks === true && declaresTasks(client);

const declaresTasks = ({ extensions }: ClientCapabilities): boolean =>
  extensions?.[TASKS] !== undefined;

const requireTasks =
  (run: RunMethod): RunMethod =>
  async (params, context, call) => {
    checkDeclaresTasks(context.client);
    return run(params, context, call);
  };

function checkDeclaresTasks(client: ClientCapabilities): void {
  if (declaresTasks(client)) return;
  fail('missing_client_capability', {
    details: `Tasks need a client that declares the extension ${TASKS}.`,
    data: { requiredCapabilities: { extensions: { [TASKS]: {} } } },
  });
}

/** What depends on the caller is private. */
const NOT_SHARED = { ttlMs: 10_000, scope: 'private' } as const;

const COMPLETE = { resultType: 'complete' } as const;

/** Whether what is added replaces nothing of the result. */
const isAddedTo = (result: object): boolean =>
  Object.keys(result).length > 0 && !ADDED.some((name) => Object.hasOwn(result, name));

const ADDED = ['resultType', 'ttlMs', 'cacheScope', '_meta'] as const;

// MCP 2026-07-28 "Subscriptions": subscriptions/listen with MCP_STREAMS=true.

interface SubscriptionsDeps {
  readonly tasks: Tasks;
  readonly notificationStreams: NotificationStreams;
  /** The `_meta` of every result. */
  readonly serverInfo: JsonObject;
}

/** Answers with a stream of what the client opted in to, and this service can tell. */
type OpenSubscription = (
  request: JsonRpcRequest,
  filter: Filter,
  call: Call,
  caller: IdentifiedCaller,
  /** The same caller, for one look at a task: which guards look at it, the record of that look says. */
  createCaller: (record: CallRecord) => Promise<CallContext>,
) => Promise<StreamResponse>;

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

function createOpenSubscription(deps: SubscriptionsDeps): OpenSubscription {
  const { notificationStreams, serverInfo, tasks } = deps;

  return async function openSubscription({ id }, filter, call, caller, createCaller) {
    const { catalog } = call;
    if (!isShortId(id)) {
      fail('invalid_params', {
        details: 'The id of a subscription may have at most 256 characters',
      });
    }
    const lists = catalog.offers.listChanges === true ? filter.lists : [];
    const uris = new Set<string>();
    // One after the other: each may ask a server.
    for (const uri of filter.uris) if (await catalog.canWatch(uri, caller)) uris.add(uri);
    const watched = filter.taskIds.length > 0 ? await watchTasks(filter, call, createCaller) : NONE;
    const subscription = { [SUBSCRIPTION_ID]: id };
    const withSubscription = (members: object) => ({ ...members, _meta: subscription });
    const result = { resultType: 'complete', _meta: { ...subscription, ...serverInfo } };
    const notifications = {
      ...Object.fromEntries(lists.map((list) => [`${list}ListChanged`, true])),
      ...(uris.size > 0 && { resourceSubscriptions: [...uris] }),
      ...(watched.taskIds.length > 0 && { taskIds: watched.taskIds }),
    };
    const options: NotificationStreamOptions = {
      user: caller.user,
      lastMessage: { jsonrpc: '2.0', result, id },
      listen({ send }) {
        const notify = (name: string, members: object) =>
          send({ method: `notifications/${name}`, params: withSubscription(members) });
        notify('subscriptions/acknowledged', { notifications });
        const stopListening = catalog.listen(
          caller,
          {
            listChanged(list) {
              if (lists.includes(list)) notify(`${list}/list_changed`, {});
            },
            resourceUpdated(uri) {
              if (uris.has(uri)) notify('resources/updated', { uri });
            },
          },
          [...uris],
        );
        const stopTasks = watched.listen((task) => notify('tasks', task));
        return () => {
          stopTasks();
          watched.release();
          stopListening();
        };
      },
    };
    try {
      return notificationStreams.open(options).response;
    } catch (thrown) {
      watched.release();
      throw thrown;
    }
  };

  /** Those that the caller may read; of others nothing is told. @throws GatewayError `too_many_streams` */
  async function watchTasks(
    filter: Filter,
    call: Call,
    createCaller: (record: CallRecord) => Promise<CallContext>,
  ): Promise<WatchedTasks> {
    const { catalog, user } = call;
    const wanted = [...new Set(filter.taskIds)];
    const release = tasks.reserveWatches(user, wanted.length);
    const taskIds: string[] = [];

    async function readTask(taskId: string): Promise<JsonObject> {
      const record = { ...call.record, target: undefined };
      return tasks.read(taskId, await createCaller(record), { catalog, record });
    }

    try {
      for (const taskId of wanted) if (await canRead(readTask(taskId))) taskIds.push(taskId);
    } catch (thrown) {
      release();
      throw thrown;
    }
    return {
      taskIds,
      listen(tell) {
        const stops = taskIds.map((taskId) =>
          tasks.watch({ taskId, user, catalog, read: () => readTask(taskId), tell }),
        );
        return () => {
          for (const stop of stops) stop();
        };
      },
      release,
    };
  }
}

const canRead = (reading: Promise<JsonObject>): Promise<boolean> =>
  reading.then(
    () => true,
    (thrown: unknown) => {
      if (thrown instanceof GatewayError && HIDDEN.has(thrown.key)) return false;
      throw thrown;
    },
  );

interface WatchedTasks {
  readonly taskIds: readonly string[];
  listen(tell: (task: JsonObject) => void): () => void;
  /** They count no longer. */
  release(): void;
}

const NONE: WatchedTasks = { taskIds: [], listen: () => () => {}, release() {} };

const HIDDEN: ReadonlySet<string> = new Set(['invalid_params', 'insufficient_scope']);

/** As many as a session may have at one server. */
const MAX_SUBSCRIPTIONS = 200;

interface Filter {
  readonly lists: readonly ListName[];
  readonly uris: readonly string[];
  readonly taskIds: readonly string[];
}

function readFilter(params: unknown): Filter {
  const { notifications } = readParams(params);
  if (!isObject(notifications)) {
    return fail('invalid_params', { details: 'params.notifications must be an object' });
  }
  return {
    uris: readNames(notifications, 'resourceSubscriptions', 'URIs'),
    taskIds: readNames(notifications, 'taskIds', 'ids of tasks'),
    lists: LIST_NAMES.filter((list) => notifications[`${list}ListChanged`] === true),
  };
}

function readNames(notifications: JsonObject, member: string, what: string): readonly string[] {
  const { [member]: names = [] } = notifications;
  if (Array.isArray(names) && names.length > MAX_SUBSCRIPTIONS) {
    return fail('invalid_params', {
      details: `params.notifications.${member} may have at most ${MAX_SUBSCRIPTIONS} ${what}`,
    });
  }
  return isStringArray(names)
    ? names
    : fail('invalid_params', {
        details: `params.notifications.${member} must be an array of ${what}`,
      });
}
