// MCP 2026-07-28 "Subscriptions": subscriptions/listen with MCP_STREAMS=true.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject, isStringArray, type JsonObject } from '../../../core/json.ts';
import { isShortId, type JsonRpcRequest, readParams } from '../../../protocol/json-rpc.ts';
import type { ListName } from '../../../protocol/list-kinds.ts';
import type { StreamResponse } from '../calls/response.ts';
import type { IdentifiedCaller, ServedCatalog } from '../catalog/served-catalog.ts';
import type { NotificationStreams } from '../streaming/notification-streams.ts';
import type { ResourceUpdates } from '../streaming/resource-updates.ts';

export interface SubscriptionsDeps {
  readonly notificationStreams: NotificationStreams;
  readonly resourceUpdates: ResourceUpdates;
  /** The `_meta` of every result. */
  readonly serverInfo: JsonObject;
}

/** Answers with a stream of what the client opted in to, and this service can tell. */
export type OpenSubscription = (
  request: JsonRpcRequest,
  catalog: ServedCatalog,
  caller: IdentifiedCaller,
) => Promise<StreamResponse>;

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

export function createOpenSubscription(deps: SubscriptionsDeps): OpenSubscription {
  const { notificationStreams, resourceUpdates, serverInfo } = deps;

  return async function openSubscription({ id, params }, catalog, caller) {
    if (!isShortId(id)) {
      fail('invalid_params', {
        details: 'The id of a subscription may have at most 256 characters',
      });
    }
    const filter = readFilter(params);
    const lists = catalog.offers.listChanges === true ? filter.lists : [];
    const watched = await Promise.all(filter.uris.map((uri) => catalog.canWatch(uri, caller)));
    const uris = new Set(filter.uris.filter((_, index) => watched[index]));
    const subscription = { [SUBSCRIPTION_ID]: id };
    const withSubscription = (members: object) => ({ ...members, _meta: subscription });
    const result = { resultType: 'complete', _meta: { ...subscription, ...serverInfo } };
    let unsubscribe = () => {};
    let stopListening: (() => void) | undefined;
    const stream = notificationStreams.open({
      user: caller.user?.sub,
      onEnd() {
        unsubscribe();
        stopListening?.();
      },
      lastMessage: { jsonrpc: '2.0', result, id },
    });
    const notifications = {
      ...Object.fromEntries(lists.map((list) => [`${list}ListChanged`, true])),
      ...(uris.size > 0 && { resourceSubscriptions: [...uris] }),
    };
    stream.send({
      method: 'notifications/subscriptions/acknowledged',
      params: withSubscription({ notifications }),
    });
    try {
      unsubscribe = resourceUpdates.subscribe(sendUpdate);
      stopListening = catalog.listen(
        caller,
        {
          listChanged(list) {
            if (!lists.includes(list)) return;
            stream.send({
              method: `notifications/${list}/list_changed`,
              params: withSubscription({}),
            });
          },
          resourceUpdated: sendUpdate,
        },
        [...uris],
      );
    } catch (error) {
      stream.end();
      throw error;
    }
    return stream.response;

    function sendUpdate(uri: string): void {
      if (!uris.has(uri)) return;
      stream.send({
        method: 'notifications/resources/updated',
        params: withSubscription({ uri }),
      });
    }
  };
}

const LISTS: readonly ListName[] = ['tools', 'prompts', 'resources'];

interface Filter {
  readonly lists: readonly ListName[];
  readonly uris: readonly string[];
}

function readFilter(params: unknown): Filter {
  const { notifications } = readParams(params);
  if (!isObject(notifications)) {
    return fail('invalid_params', { details: 'params.notifications must be an object' });
  }
  const { resourceSubscriptions: uris = [] } = notifications;
  return isStringArray(uris)
    ? { uris, lists: LISTS.filter((list) => notifications[`${list}ListChanged`] === true) }
    : fail('invalid_params', {
        details: 'params.notifications.resourceSubscriptions must be an array of URIs',
      });
}
