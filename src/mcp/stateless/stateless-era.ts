// The stateless era, 2026-07-28: each request carries version and client capabilities; no sessions, no server-initiated requests.
import { fail, failParams, GatewayError } from '../../errors/gateway-error.ts';
import type { ReplyStream } from '../../http/endpoint/message.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import {
  addMembers,
  findWritten,
  isObject,
  isStringArray,
  type JsonObject,
  noteWritten,
  type Written,
} from '../../platform/json.ts';
import { findText, noteMembers, readExact } from '../../platform/noted-json.ts';
import { removeMembers } from '../../platform/splice-json.ts';
import { toSseEvent } from '../../platform/text.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  type Call,
  type EraHandler,
  type MethodResult,
  type Outcome,
  toAnswer,
} from '../calls/call.ts';
import { createContext } from '../calls/context.ts';
import {
  failUnknownMethod,
  failWithoutTasks,
  listCapabilities,
  type RunMethod,
} from '../calls/methods.ts';
import type { Calls } from '../calls/run-call.ts';
import type { CatalogListener } from '../catalog/catalog.ts';
import type { ClientCapabilities } from '../catalog/client-requests.ts';
import type { IdentifiedCaller } from '../catalog/served-catalog.ts';
import {
  isShortId,
  type JsonRpcRequest,
  type RequestId,
  readParams,
} from '../protocol/json-rpc.ts';
import { LIST_NAMES } from '../protocol/list-kinds.ts';
import { SUPPORTED_VERSIONS, TASKS } from '../protocol/revisions.ts';
import type { NotificationStreams } from '../streaming/notification-streams.ts';
import {
  ACCEPTED,
  type Answer,
  type KeepStream,
  renderResponse,
  type StreamResponse,
  toErrorAnswer,
} from '../streaming/response-stream.ts';
import type { TaskOffer, Tasks } from '../tasks/tasks.ts';
import { changeUnread, findUnread } from '../upstream/unread-result.ts';
import { checkNameHeader, type Envelope, readEnvelope } from './envelope.ts';
import { createRequestState, type Round, startRound } from './multi-round-trip.ts';

/** Like the lists, changes only with a deploy. */
const DISCOVER_CACHE = { ttlMs: 60_000, scope: 'public' } as const;

export function createStatelessEraHandler(
  runtime: Runtime,
  calls: Calls,
  tasks: Tasks,
  notificationStreams: NotificationStreams,
): EraHandler {
  const { streams: hasStreams } = runtime.config.mcp;
  const { name, version } = calls.services.service;
  const requestState = createRequestState(runtime);
  const createServerInfo = (members: JsonObject) => ({
    'io.modelcontextprotocol/serverInfo': { name, version, ...members },
  });
  const serverInfo = createServerInfo({});
  // Part of each result.
  noteWritten(serverInfo, JSON.stringify(serverInfo));
  const ownRuns: Readonly<Record<string, RunMethod>> = {
    async 'server/discover'(_, context, { catalog }) {
      const description = await catalog.describe(context);
      const { instructions } = description;
      const result = {
        supportedVersions: SUPPORTED_VERSIONS,
        capabilities: listCapabilities(description, hasStreams, 'stateless'),
        ...(instructions !== undefined && { instructions }),
      };
      return { result, cache: catalog.isShared ? DISCOVER_CACHE : NOT_SHARED };
    },
    ...Object.fromEntries(
      Object.entries(tasks.methods).map(([method, run]): [string, RunMethod] => [
        method,
        async (params, context, call) => {
          checkDeclaresTasks(context.client);
          return run(params, context, call);
        },
      ]),
    ),
  };

  return {
    toSessionAccess: () => undefined,
    handle(call) {
      const { message } = call;
      if (message.kind === 'notification') return ACCEPTED;
      if (message.kind === 'response')
        fail('invalid_request', {
          details: 'This service has sent no request that this could answer.',
        });
      const { request, stream, record } = call;
      const envelope = readEnvelope(request, message, call.catalog.offers);
      const { method } = record;
      if (method === undefined) failUnknownMethod('unknown_method', message.method);
      stream.isStreamableRevision = true;
      if (method.name === 'subscriptions/listen') {
        if (!stream.isAccepted) fail('not_acceptable');
        const opening = listen(call, message, envelope);
        stream.keep(createOpeningStream(opening, message.id));
        opening.then(
          (opened) => stream.pass(opened),
          (thrown: unknown) => stream.end(toErrorAnswer(thrown)),
        );
        return stream.respond();
      }
      checkNameHeader(request, method, message.params);
      const { inputResponses: answers }: JsonObject = isObject(message.params)
        ? message.params
        : {};
      // Answers of clients reach servers exactly as written.
      if (answers) noteMembers(answers, call.sentText ?? '', ['params', 'inputResponses']);
      return stream.answerWith(answerCall(call, message, envelope));
    },
  };

  /** Counts as a running call until the stream is open: servers may be queried first. */
  async function listen(
    call: Call,
    message: JsonRpcRequest,
    envelope: Envelope,
  ): Promise<StreamResponse> {
    const { user, catalog } = call;
    const { client } = envelope;
    const stopCounting = calls.count(call);
    try {
      const clientId = calls.findClientId({ user });
      call.record.clientId = clientId;
      const caller = { user, session: undefined, client, clientId, view: catalog.view };
      return await openSubscription(call, message, envelope, caller);
    } finally {
      stopCounting();
    }
  }

  /** Opens a stream of the notifications that the client requests and the catalogue offers. */
  async function openSubscription(
    call: Call,
    message: JsonRpcRequest,
    envelope: Envelope,
    caller: IdentifiedCaller,
  ): Promise<StreamResponse> {
    const { catalog, user } = call;
    const { id } = message;
    const filter = readFilter(message.params);
    if (filter.taskIds.length > 0) checkDeclaresTasks(envelope.client);
    if (!isShortId(id)) failParams('The id of a subscription may have at most 256 characters');
    const lists = catalog.offers.listChanges === true ? filter.lists : [];
    const uris = new Set<string>();
    // Sequentially: each may query a server.
    for (const uri of filter.uris) if (await catalog.canWatch(uri, caller)) uris.add(uri);
    const readTask = async (taskId: string): Promise<JsonObject> => {
      // A record of its own: guards are chosen by the task's tool, not by this call.
      const record = { ...call.record, target: undefined };
      const context = createContext(
        {
          user,
          session: call.session,
          record,
          message,
          stream: call.stream,
          signal: () => call.signal(),
          abortSignal: () => call.abortSignal(),
        },
        await startRound(call, message, envelope, requestState),
        calls.services,
      );
      return tasks.read(taskId, context, { catalog, record });
    };
    const wanted = [...new Set(filter.taskIds)];
    const release = tasks.reserveWatches(user, wanted.length);
    try {
      // Only tasks that the caller may read.
      const taskIds: string[] = [];
      for (const taskId of wanted) if (await canRead(readTask(taskId))) taskIds.push(taskId);
      const subscription = { [SUBSCRIPTION_ID]: id };
      const result = { resultType: 'complete', _meta: { ...subscription, ...serverInfo } };
      const notifications = {
        ...Object.fromEntries(lists.map((list) => [`${list}ListChanged`, true])),
        ...(uris.size > 0 && { resourceSubscriptions: [...uris] }),
        ...(taskIds.length > 0 && { taskIds }),
      };
      const { response } = notificationStreams.open({
        user,
        lastMessage: { jsonrpc: '2.0', result, id },
        listen(stream) {
          const notify = (method: string, members: object) => {
            const params = { ...members, _meta: subscription };
            stream.send({ method: `notifications/${method}`, params });
          };
          notify('subscriptions/acknowledged', { notifications });
          const listener: CatalogListener = {
            listChanged(list) {
              if (lists.includes(list)) notify(`${list}/list_changed`, {});
            },
            resourceUpdated(uri) {
              if (uris.has(uri)) notify('resources/updated', { uri });
            },
          };
          const stopListening = catalog.listen(caller, listener, [...uris]);
          const watches = taskIds.map((taskId) =>
            tasks.watch(
              taskId,
              call,
              () => readTask(taskId),
              (task) => notify('tasks', task),
            ),
          );
          return () => {
            for (const stop of watches) stop();
            release();
            stopListening();
          };
        },
      });
      return response;
    } catch (thrown) {
      release();
      throw thrown;
    }
  }

  /** Does not await the call: that would keep the request until it ends. */
  async function answerCall(
    call: Call,
    request: JsonRpcRequest,
    envelope: Envelope,
  ): Promise<Answer> {
    const mayBeTask =
      call.record.method?.item?.kind === 'tool' &&
      call.catalog.offers.tasks === true &&
      declaresTasks(envelope.client);
    const task = mayBeTask ? tasks.offer(call) : undefined;
    const round = await startRound(call, request, envelope, requestState);
    round.task = task;
    const work = calls.run(call, round, ownRuns[request.method]);
    // Views (§25.1) have their own title.
    const { title } = call.catalog;
    const info = title === undefined ? serverInfo : createServerInfo({ title });
    return task === undefined ? endRound(round, work, info) : answerOrGoOn(task, round, work, info);
  }

  /** §29: the end of a call that has become a task is the task's. */
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
          ? task.end(
              toAnswer(outcome, true, ({ result }) => ({ resultType: 'complete', ...result })),
            )
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
    const meta = addServerInfo(result, info);
    // Relays the result as written between the added members.
    const kept = findWrittenWithout(result, hint === undefined ? ADDED : ADDED_WITH_HINT);
    const added = `"_meta":${findText(meta) ?? writeExactJson(meta)}`;
    const behind = hint === undefined ? added : `${JSON.stringify(hint).slice(1, -1)},${added}`;
    const written = kept && addMembers(kept, '"resultType":"complete"', behind);
    // Begins with a member, so that all results have one hidden class (docs/decisions/0024).
    if (written === undefined) return { resultType: 'complete', ...result, ...hint, _meta: meta };
    // Only what is written is sent: copying the members of a long result would parse them.
    const shown = { resultType: 'complete' };
    noteWritten(shown, written);
    return shown;
  }
}

const declaresTasks = ({ extensions }: ClientCapabilities) => extensions?.[TASKS] !== undefined;

function checkDeclaresTasks(client: ClientCapabilities) {
  if (!declaresTasks(client)) failWithoutTasks('Tasks need a client');
}

const withServerInfo = (result: JsonObject, info: JsonObject): JsonObject => ({
  ...result,
  _meta: addServerInfo(result, info),
});

/** Every result names the server. */
function addServerInfo(result: object, info: JsonObject): JsonObject {
  if (!('_meta' in result)) return info;
  const meta = findUnread(result) ? readExact(Object(result._meta)) : readExact(result)._meta;
  return isObject(meta) ? { ...meta, ...info } : info;
}

/** Private: it depends on the caller. */
const NOT_SHARED = { ttlMs: 10_000, scope: 'private' } as const;

/** The members that the gateway adds; with those of cacheable results. */
const ADDED = ['resultType', '_meta'] as const;
const ADDED_WITH_HINT = [...ADDED, 'ttlMs', 'cacheScope'] as const;

/** The serialized result without these members; undefined if it is unknown, or nothing is left. */
function findWrittenWithout(result: object, names: readonly string[]): Written | undefined {
  const replaced = names.filter((name) => Object.hasOwn(result, name));
  if (replaced.length === Object.keys(result).length) return undefined;
  if (replaced.length === 0) return findWritten(result) ?? findText(result);
  if (findUnread(result)) return findWritten(changeUnread(result, new Set(replaced)));
  const text = findText(result);
  return text && removeMembers(text, replaced);
}

// MCP 2026-07-28 "Subscriptions": subscriptions/listen with MCP_STREAMS=true.

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

const canRead = (reading: Promise<JsonObject>) =>
  reading.then(
    () => true,
    (thrown: unknown) => {
      if (thrown instanceof GatewayError && HIDDEN.has(thrown.key)) return false;
      throw thrown;
    },
  );

const HIDDEN = new Set(['invalid_params', 'insufficient_scope']);

/** The limit of a session at one server. */
const MAX_SUBSCRIPTIONS = 200;

function readFilter(params: unknown) {
  const { notifications } = readParams(params);
  if (!isObject(notifications)) return failParams('params.notifications must be an object');
  return {
    uris: readNames(notifications, 'resourceSubscriptions', 'URIs'),
    taskIds: readNames(notifications, 'taskIds', 'ids of tasks'),
    lists: LIST_NAMES.filter((list) => notifications[`${list}ListChanged`] === true),
  };
}

function readNames(notifications: JsonObject, member: string, what: string) {
  const { [member]: names = [] } = notifications;
  if (Array.isArray(names) && names.length > MAX_SUBSCRIPTIONS)
    return failParams(
      `params.notifications.${member} may have at most ${MAX_SUBSCRIPTIONS} ${what}`,
    );
  return isStringArray(names)
    ? names
    : failParams(`params.notifications.${member} must be an array of ${what}`);
}

// The stream of a subscription that is slow to open because servers are queried first: heartbeats begin before it is open, so that
// no proxy closes an idle connection.

/** For `ResponseStream.keep`: used only if opening takes a long time. */
const createOpeningStream = (opening: Promise<StreamResponse>, id: RequestId): KeepStream => ({
  canPrime: false,
  start() {
    const opened: Promise<ReplyStream> = opening.then(
      ({ events }) => events,
      async function* tellError(thrown: unknown) {
        yield toSseEvent(renderResponse(toErrorAnswer(thrown), id).text);
      },
    );
    const reading = opened.then((events) => events[Symbol.asyncIterator]());
    const items: ReplyStream = {
      watchWaiting: (watcher) => void opened.then((events) => events.watchWaiting?.(watcher)),
      [Symbol.asyncIterator]: () => ({
        next: async () => (await reading).next(),
        // A client that leaves early ends it as soon as it is open.
        async return() {
          await (await reading).return?.();
          return { done: true, value: undefined };
        },
      }),
    };
    // Only the opened stream sends.
    return { items, begin() {}, send() {}, end() {}, disconnect() {} };
  },
});
