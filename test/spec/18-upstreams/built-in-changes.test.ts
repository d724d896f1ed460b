// §18.5: changes of built-in resources are told to those who may still read them.
import { expect, test } from 'vitest';
import { createChangingResources } from '../../support/catalogs/changing-resources.ts';
import type { EventStream } from '../../support/clients/event-stream.ts';
import { openEvents } from '../../support/clients/event-stream.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';

const file = (...may: string[]) => ({ mcpServers: {}, rules: [{ who: 'everyone', may }] });
const URIS = ['watched://a', 'watched://b'];

async function start() {
  const { catalog, change } = createChangingResources();
  const env = { MCP_STREAMS: 'true' };
  const gateway = await startForTest({ file: file('resource:*', '*'), builtIn: catalog, env });
  return { gateway, change };
}

/** The resource of the next update; other messages are passed over. */
async function readUpdate(stream: EventStream): Promise<unknown> {
  for (;;) {
    const message = await stream.next();
    if (message?.method === 'notifications/resources/updated') return message.params.uri;
    if (message === undefined) return undefined;
  }
}

test('§18.5 a session no longer hears of a built-in resource that new rules deny', async () => {
  const { gateway, change } = await start();
  const client = await openClient(gateway);
  const stream = await client.watch();
  for (const uri of URIS) await client.ask('resources/subscribe', { uri });
  await gateway.reload(file('resource:watched://b'));
  change('a');
  change('b');
  expect(await readUpdate(stream)).toBe('watched://b');
  stream.hangUp();
});

test('§18.5 a stateless subscription no longer hears of a built-in resource that new rules deny', async () => {
  const { gateway, change } = await start();
  const notifications = { resourceSubscriptions: URIS };
  const { message, headers } = statelessRequest('subscriptions/listen', { notifications });
  const stream = await openEvents({
    port: await gateway.listen(),
    headers: {
      ...headers,
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${await gateway.issuer.sign()}`,
    },
    body: message,
  });
  expect(await stream.next()).toMatchObject({ params: { notifications } });
  await gateway.reload(file('resource:watched://b'));
  change('a');
  change('b');
  expect(await readUpdate(stream)).toBe('watched://b');
  stream.hangUp();
});

test('§18.5 a stream no longer hears of built-in resources while the file does not serve them', async () => {
  const { gateway, change } = await start();
  const client = await openClient(gateway);
  const stream = await client.watch();
  for (const uri of URIS) await client.ask('resources/subscribe', { uri });
  await gateway.reload({ ...file('resource:*'), builtIn: false });
  change('a');
  await gateway.reload(file('resource:*'));
  change('b');
  expect(await readUpdate(stream)).toBe('watched://b');
  stream.hangUp();
});
