// MCP 2026-07-28 "Subscriptions": subscriptions/listen with MCP_STREAMS=true.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject, isStringArray, type JsonObject } from '../../../core/json.ts';
import type { UserContext } from '../../../core/user-context.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { isShortId, type JsonRpcRequest, readParams } from '../protocol/json-rpc.ts';
import type { StreamResponse } from '../protocol/response.ts';
import type { NotificationStreams } from '../streaming/notification-streams.ts';
import type { ResourceUpdates } from '../streaming/resource-updates.ts';

export interface SubscriptionsDeps {
  readonly catalog: Catalog;
  readonly notificationStreams: NotificationStreams;
  readonly resourceUpdates: ResourceUpdates;
  /** The `_meta` of every result. */
  readonly serverInfo: JsonObject;
}

/** Answers with a stream of what the client opted in to, and this service can tell. */
export type OpenSubscription = (
  request: JsonRpcRequest,
  user: UserContext | undefined,
) => StreamResponse;

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

export function createOpenSubscription(deps: SubscriptionsDeps): OpenSubscription {
  const { catalog, notificationStreams, resourceUpdates, serverInfo } = deps;

  return function openSubscription({ id, params }, user) {
    if (!isShortId(id)) {
      fail('invalid_params', {
        details: 'The id of a subscription may have at most 256 characters',
      });
    }
    const uris = new Set(readUris(params).filter((uri) => catalog.canWatch(uri)));
    const subscription = { [SUBSCRIPTION_ID]: id };
    const withSubscription = (members: object) => ({ ...members, _meta: subscription });
    const result = { resultType: 'complete', _meta: { ...subscription, ...serverInfo } };
    let unsubscribe = () => {};
    const stream = notificationStreams.open({
      user: user?.sub,
      onEnd: () => unsubscribe(),
      lastMessage: { jsonrpc: '2.0', result, id },
    });
    const notifications = uris.size > 0 ? { resourceSubscriptions: [...uris] } : {};
    stream.send({
      method: 'notifications/subscriptions/acknowledged',
      params: withSubscription({ notifications }),
    });
    try {
      unsubscribe = resourceUpdates.subscribe((uri) => {
        if (!uris.has(uri)) return;
        stream.send({
          method: 'notifications/resources/updated',
          params: withSubscription({ uri }),
        });
      });
    } catch (error) {
      stream.end();
      throw error;
    }
    return stream.response;
  };
}

function readUris(params: unknown): readonly string[] {
  const { notifications } = readParams(params);
  if (!isObject(notifications)) {
    return fail('invalid_params', { details: 'params.notifications must be an object' });
  }
  const { resourceSubscriptions: uris = [] } = notifications;
  return isStringArray(uris)
    ? uris
    : fail('invalid_params', {
        details: 'params.notifications.resourceSubscriptions must be an array of URIs',
      });
}
