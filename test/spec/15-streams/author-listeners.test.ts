// §15.1: an author's catalogue may keep what it is given to tell by, each function apart, as the handler of an event.
import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { GatewayError } from '../../../src/errors/gateway-error.ts';
import type { Catalog } from '../../../src/mcp/catalog/catalog.ts';
import { createWaitingCatalog } from '../../support/catalogs/waiting-catalog.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { useFreshGateway } from '../../support/gateway/use-gateway.ts';

const events = new EventEmitter();
const PAGE = { mode: 'url', message: 'Open it.', url: 'https://a.example', elicitationId: 'e-1' };
const local = createWaitingCatalog().catalog;
const catalog: Catalog = {
  ...local,
  offers: { ...local.offers, listChanges: true, logging: true, subscriptions: true },
  canWatch: () => true,
  async callTool() {
    const error = { code: -32042, message: 'Open it.', data: { elicitations: [PAGE] } };
    throw new GatewayError('upstream_error', { jsonRpc: error });
  },
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
  await client.ask('tools/call', { name: 'wait', arguments: { name: 'page' } });
  for (const id of ['never asked', PAGE.elicitationId]) events.emit('elicitation', id);
  expect(await stream.next()).toMatchObject({
    method: 'notifications/elicitation/complete',
    params: { elicitationId: PAGE.elicitationId },
  });
  events.emit('log', { level: 'error', data: 'hello' });
  expect(await stream.next()).toMatchObject({
    method: 'notifications/message',
    params: { level: 'error', data: 'hello' },
  });
  stream.hangUp();
});
