// §15.1: an author's catalogue may keep what it is given to tell by, each function apart, as the handler of an event.
import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import type { Catalog } from '../../../src/mcp/catalog/catalog.ts';
import { createWaitingCatalog } from '../../support/catalogs/waiting-catalog.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { useFreshGateway } from '../../support/gateway/use-gateway.ts';

const events = new EventEmitter();
const local = createWaitingCatalog().catalog;
const catalog: Catalog = {
  ...local,
  offers: { ...local.offers, listChanges: true, logging: true, subscriptions: true },
  canWatch: () => true,
  listen(_caller, { listChanged, resourceUpdated, elicitationCompleted, logged }) {
    events.on('list', listChanged);
    events.on('resource', resourceUpdated);
    if (elicitationCompleted) events.on('elicitation', elicitationCompleted);
    if (logged) events.on('log', logged);
    return () => void events.removeAllListeners();
  },
};
const gateway = useFreshGateway(() => ({ env: { MCP_STREAMS: 'true' }, deps: { catalog } }));

test('§15.1 a session hears what an author tells by functions that it took off its listener', async () => {
  const client = await openClient(gateway);
  const stream = await client.watch();
  await client.ask('resources/subscribe', { uri: 'file:///one' });
  await expect.poll(() => events.listenerCount('list')).toBe(1);
  events.emit('list', 'tools');
  expect(await stream.next()).toMatchObject({ method: 'notifications/tools/list_changed' });
  events.emit('resource', 'file:///one');
  expect(await stream.next()).toMatchObject({
    method: 'notifications/resources/updated',
    params: { uri: 'file:///one' },
  });
  events.emit('elicitation', 'done');
  expect(await stream.next()).toMatchObject({
    method: 'notifications/elicitation/complete',
    params: { elicitationId: 'done' },
  });
  events.emit('log', { level: 'error', data: 'hello' });
  expect(await stream.next()).toMatchObject({
    method: 'notifications/message',
    params: { level: 'error', data: 'hello' },
  });
  stream.hangUp();
});
