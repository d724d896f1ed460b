// A server's notification, told to whom it is for; what cannot be attributed is dropped.
import { readExact } from '../../platform/noted-json.ts';
import type { ListName } from '../../protocol/list-kinds.ts';
import type { UpstreamListener, UpstreamRequest } from '../upstream.ts';
import { readEchoedNumber, type ServerNotification } from './server-message.ts';

/**
 * One that came with the answer to a request, whose progress token was `token`. False where it does not belong to
 * the request.
 */
export function routeToRequest(
  { method, params }: ServerNotification,
  token: number,
  request: UpstreamRequest,
): boolean {
  if (method === 'notifications/message') request.onLog?.(readExact(params));
  else if (method !== 'notifications/progress') return false;
  else if (readEchoedNumber(params.progressToken) === token) request.onProgress?.(params);
  return true;
}

/** What a server says to whoever listens. */
export type ServerChange =
  | { readonly kind: 'list'; readonly list: ListName }
  | { readonly kind: 'resource'; readonly uri: string }
  | { readonly kind: 'elicitation'; readonly elicitationId: string };

const LISTS: Readonly<Record<string, ListName>> = {
  'notifications/tools/list_changed': 'tools',
  'notifications/prompts/list_changed': 'prompts',
  'notifications/resources/list_changed': 'resources',
};

/** Undefined for any other notification. */
export function readChange({ method, params }: ServerNotification): ServerChange | undefined {
  const list = Object.hasOwn(LISTS, method) ? LISTS[method] : undefined;
  if (list !== undefined) return { kind: 'list', list };
  const { uri, elicitationId } = params;
  if (method === 'notifications/resources/updated' && typeof uri === 'string') {
    return { kind: 'resource', uri };
  }
  return method === 'notifications/elicitation/complete' && typeof elicitationId === 'string'
    ? { kind: 'elicitation', elicitationId }
    : undefined;
}

export function tellListener(listener: UpstreamListener, change: ServerChange): void {
  if (change.kind === 'list') listener.listChanged(change.list);
  else if (change.kind === 'resource') listener.resourceUpdated(change.uri);
  else listener.elicitationCompleted?.(change.elicitationId);
}
