// MCP 2026-07-28 "Subscriptions": subscriptions/listen with MCP_STREAMS=true.

import { failParams, GatewayError } from '../../errors/gateway-error.ts';
import type { ReplyStream } from '../../http/endpoint/message.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import { toSseEvent } from '../../platform/text.ts';
import type { Call, CallRecord } from '../calls/call.ts';
import type { CallContext } from '../calls/context.ts';
import { renderResponse, type StreamResponse, toErrorAnswer } from '../calls/outcome.ts';
import type { CatalogListener } from '../catalog/catalog.ts';
import type { IdentifiedCaller } from '../catalog/served-catalog.ts';
import {
  isShortId,
  type JsonRpcRequest,
  type RequestId,
  readParams,
} from '../protocol/json-rpc.ts';
import { LIST_NAMES } from '../protocol/list-kinds.ts';
import type { NotificationStreams } from '../streaming/notification-streams.ts';
import type { KeepStream } from '../streaming/response-stream.ts';
import type { Tasks } from '../tasks/tasks.ts';

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/** `serverInfo` is the `_meta` of every result. */
export function createOpenSubscription(
  notificationStreams: NotificationStreams,
  tasks: Tasks,
  serverInfo: JsonObject,
) {
  /** Answers with a stream of what the client opted in to, and this service can tell. */
  return async function openSubscription(
    { id }: JsonRpcRequest,
    filter: ReturnType<typeof readFilter>,
    call: Call,
    caller: IdentifiedCaller,
    /** The same caller, for one look at a task: which guards look at it, the record of that look says. */
    createCaller: (record: CallRecord) => Promise<CallContext>,
  ): Promise<StreamResponse> {
    const { catalog, user } = call;
    if (!isShortId(id)) {
      failParams('The id of a subscription may have at most 256 characters');
    }
    const lists = catalog.offers.listChanges === true ? filter.lists : [];
    const uris = new Set<string>();
    // One after the other: each may ask a server.
    for (const uri of filter.uris) if (await catalog.canWatch(uri, caller)) uris.add(uri);
    const readTask = async (taskId: string): Promise<JsonObject> => {
      const record = { ...call.record, target: undefined };
      return tasks.read(taskId, await createCaller(record), { catalog, record });
    };
    const wanted = [...new Set(filter.taskIds)];
    const release = tasks.reserveWatches(user, wanted.length);
    try {
      // Those that the caller may read; of others nothing is told.
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
          const notify = (name: string, members: object) => {
            const params = { ...members, _meta: subscription };
            stream.send({ method: `notifications/${name}`, params });
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
          const tell = (task: JsonObject) => notify('tasks', task);
          const watches = taskIds.map((taskId) =>
            tasks.watch(taskId, call, () => readTask(taskId), tell),
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
  };
}

const canRead = (reading: Promise<JsonObject>): Promise<boolean> =>
  reading.then(
    () => true,
    (thrown: unknown) => {
      if (thrown instanceof GatewayError && HIDDEN.has(thrown.key)) return false;
      throw thrown;
    },
  );

const HIDDEN = new Set(['invalid_params', 'insufficient_scope']);

/** As many as a session may have at one server. */
const MAX_SUBSCRIPTIONS = 200;

export function readFilter(params: unknown) {
  const { notifications } = readParams(params);
  if (!isObject(notifications)) {
    return failParams('params.notifications must be an object');
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
    return failParams(
      `params.notifications.${member} may have at most ${MAX_SUBSCRIPTIONS} ${what}`,
    );
  }
  return isStringArray(names)
    ? names
    : failParams(`params.notifications.${member} must be an array of ${what}`);
}

// The stream of a subscription that takes long to open, as servers are asked first. It
// begins before that, so that nobody on its way takes its silence for an end.

/** For `ResponseStream.keep`. Whether it is needed shows while it opens. */
export const createOpeningStream = (
  opening: Promise<StreamResponse>,
  id: RequestId,
): KeepStream => ({
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
        // A client that leaves before it is open ends it once it is.
        async return() {
          await (await reading).return?.();
          return { done: true, value: undefined };
        },
      }),
    };
    // All that is sent comes of what opens.
    return { items, begin() {}, send() {}, end() {}, disconnect() {} };
  },
});
