// MCP 2026-07-28 "Subscriptions": subscriptions/listen with MCP_STREAMS=true.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject, isStringArray } from '../../../core/json.ts';
import type { Reply } from '../../../core/message.ts';
import type { UserContext } from '../../../core/user-context.ts';
import type { Catalog, ServiceInfo } from '../catalog/catalog.ts';
import { isShort, paramsOf, type Request } from '../protocol/json-rpc.ts';
import type { EventStreams } from '../streaming/listening-streams.ts';
import type { Updates } from '../streaming/resource-updates.ts';
import { serverInfoOf } from './server-info.ts';

export interface ListenDeps {
  readonly catalog: Catalog;
  readonly streams: EventStreams;
  readonly updates: Updates;
  readonly service: ServiceInfo;
}

/** Answers with a stream of what the client opted in to, and this service can tell. */
export type Listen = (request: Request, user: UserContext | undefined) => Reply;

const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

export function createListen({ catalog, streams, updates, service }: ListenDeps): Listen {
  return function listen({ id, params }, user) {
    if (!isShort(id)) {
      fail('invalid_params', { details: 'The id of a subscription has at most 256 characters' });
    }
    const uris = new Set(urisIn(params).filter((uri) => catalog.canWatch(uri)));
    const tag = { [SUBSCRIPTION_ID]: id };
    const tagged = (members: object) => ({ ...members, _meta: tag });
    const result = { resultType: 'complete', _meta: { ...tag, ...serverInfoOf(service) } };
    let stop = () => {};
    const stream = streams.open({
      user: user?.sub,
      onEnd: () => stop(),
      farewell: { jsonrpc: '2.0', result, id },
    });
    const notifications = uris.size > 0 ? { resourceSubscriptions: [...uris] } : {};
    stream.say({
      method: 'notifications/subscriptions/acknowledged',
      params: tagged({ notifications }),
    });
    try {
      stop = updates((uri) => {
        if (!uris.has(uri)) return;
        stream.say({ method: 'notifications/resources/updated', params: tagged({ uri }) });
      });
    } catch (error) {
      stream.end();
      throw error;
    }
    return stream.reply;
  };
}

function urisIn(params: unknown): readonly string[] {
  const { notifications } = paramsOf(params);
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
