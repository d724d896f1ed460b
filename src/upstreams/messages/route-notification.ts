// A server's notification, told to whom it is for; what cannot be attributed is dropped.
import type { ListName } from '../../protocol/list-kinds.ts';
import type { UpstreamListener, UpstreamRequest } from '../upstream.ts';
import type { ServerNotification } from './server-message.ts';

/**
 * One that came with the answer to a request, whose progress token was `token`. False where it does not belong to
 * the request.
 */
export function routeToRequest(
  { method, params }: ServerNotification,
  token: number,
  request: UpstreamRequest,
): boolean {
  if (method === 'notifications/message') request.onLog?.(params);
  else if (method !== 'notifications/progress') return false;
  else if (params.progressToken === token) request.onProgress?.(params);
  return true;
}

const LISTS: Readonly<Record<string, ListName>> = {
  'notifications/tools/list_changed': 'tools',
  'notifications/prompts/list_changed': 'prompts',
  'notifications/resources/list_changed': 'resources',
};

/** One that belongs to no request. */
export function routeToListener(
  { method, params }: ServerNotification,
  listener: UpstreamListener,
): void {
  const list = Object.hasOwn(LISTS, method) ? LISTS[method] : undefined;
  const { uri } = params;
  if (list !== undefined) listener.listChanged(list);
  else if (method === 'notifications/resources/updated' && typeof uri === 'string') {
    listener.resourceUpdated(uri);
  } else {
    const elicitationId = readCompletedElicitation({ method, params });
    if (elicitationId !== undefined) listener.elicitationCompleted?.(elicitationId);
  }
}

/** Undefined for any other notification. */
export const readCompletedElicitation = ({
  method,
  params: { elicitationId },
}: Pick<ServerNotification, 'method' | 'params'>): string | undefined =>
  method === 'notifications/elicitation/complete' && typeof elicitationId === 'string'
    ? elicitationId
    : undefined;
