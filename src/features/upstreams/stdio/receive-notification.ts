// §18.3: what a server tells that belongs to no request.
import type { JsonObject } from '../../../core/json.ts';
import type { ListName } from '../upstream.ts';
import type { Listeners } from './listeners.ts';
import type { ProcessKey } from './process-key.ts';

const LISTS: Readonly<Record<string, ListName>> = {
  'notifications/tools/list_changed': 'tools',
  'notifications/prompts/list_changed': 'prompts',
  'notifications/resources/list_changed': 'resources',
};

export function receiveNotification(
  listeners: Listeners,
  key: ProcessKey,
  method: string,
  { uri }: JsonObject,
): void {
  const list = Object.hasOwn(LISTS, method) ? LISTS[method] : undefined;
  if (list !== undefined) listeners.tellListChanged(key, list);
  else if (method === 'notifications/resources/updated' && typeof uri === 'string') {
    listeners.tellUpdated(key, uri);
  }
}
