// §18.5: changes of built-in resources are told to those who may still read them.
import { expect, test } from 'vitest';
import type { Catalog, CatalogListener } from '../../../src/mcp/catalog/catalog.ts';
import { createChangingResources } from '../../support/catalogs/changing-resources.ts';
import type { EventStream } from '../../support/clients/event-stream.ts';
import { openEvents } from '../../support/clients/event-stream.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';

const file = (...may: string[]) => ({ mcpServers: {}, rules: [{ who: 'everyone', may }] });
const URIS = ['watched://a', 'watched://b'];

const ALL = file('resource:*', '*');
const DROPPED = { ...ALL, builtIn: false };
const env = { MCP_STREAMS: 'true' };

async function start(first: object = ALL) {
  const { catalog, change, watchers } = createChangingResources();
  const gateway = await startForTest({ file: first, builtIn: catalog, env });
  return { gateway, change, watchers };
}

/** A catalogue of an author who tells listeners, also those that stopped. */
async function startTelling(first: object) {
  const { catalog, change } = createChangingResources();
  const told: CatalogListener[] = [];
  const telling: Catalog = {
    ...catalog,
    offers: { ...catalog.offers, listChanges: true, logging: true },
    listen(_caller, listener) {
      told.push(listener);
      return () => {};
    },
  };
  // What is told again a second later never is.
  const clock = manualClock();
  const gateway = await startForTest({ file: first, builtIn: telling, env, clock });
  return { gateway, change, told };
}

function tellAll({ listChanged, resourceUpdated, logged }: CatalogListener) {
  listChanged('tools');
  resourceUpdated('watched://a');
  logged?.({ level: 'error', data: 'hello' });
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

test('§18.5 a stream hears of built-in resources that the file serves since it was opened', async () => {
  const { gateway, change } = await start(DROPPED);
  const client = await openClient(gateway);
  const stream = await client.watch();
  await gateway.reload(ALL);
  await client.ask('resources/subscribe', { uri: 'watched://a' });
  change('a');
  expect(await readUpdate(stream)).toBe('watched://a');
  stream.hangUp();
});

const TOLD_OF_LISTS = ['tools', 'prompts', 'resources'].map(
  (list) => `notifications/${list}/list_changed`,
);

/** The methods of what is told before `watched://b` changes. */
async function readMethods(stream: EventStream): Promise<readonly string[]> {
  const methods: string[] = [];
  for (;;) {
    const { method, params } = await stream.next();
    if (params.uri === 'watched://b') return methods;
    methods.push(method);
  }
}

test('§18.2 a stream hears all that a built-in catalogue tells that the file serves since it was opened', async () => {
  const { gateway, change, told } = await startTelling(DROPPED);
  const client = await openClient(gateway);
  const stream = await client.watch();
  expect(told).toHaveLength(0);
  await gateway.reload(ALL);
  for (const uri of URIS) await client.ask('resources/subscribe', { uri });
  for (const listener of told) tellAll(listener);
  // The log and updates each wait for the store: of the log nobody says when it is told.
  const methods: string[] = [];
  while (!methods.includes('notifications/message')) methods.push((await stream.next()).method);
  change('b');
  methods.push(...(await readMethods(stream)));
  expect(methods.sort()).toEqual(
    [
      ...TOLD_OF_LISTS,
      'notifications/tools/list_changed',
      'notifications/resources/updated',
      'notifications/message',
    ].sort(),
  );
  stream.hangUp();
});

test('§18.2 a stream hears nothing that a built-in catalogue tells that the file no longer serves', async () => {
  const { gateway, change, told } = await startTelling(ALL);
  const client = await openClient(gateway);
  const stream = await client.watch();
  for (const uri of URIS) await client.ask('resources/subscribe', { uri });
  const [former] = told;
  await gateway.reload(DROPPED);
  if (former) tellAll(former);
  await gateway.reload(ALL);
  // Nor from the listener that it had before.
  if (former) tellAll(former);
  change('b');
  expect(await readMethods(stream)).toEqual(TOLD_OF_LISTS);
  expect(told).toHaveLength(2);
  stream.hangUp();
});

test('§18.5 built-in resources are not watched for streams while the file does not serve them', async () => {
  const { gateway, watchers } = await start();
  const client = await openClient(gateway);
  const stream = await client.watch();
  expect(watchers('a')).toBe(1);
  await gateway.reload(DROPPED);
  expect(watchers('a')).toBe(0);
  await gateway.reload(ALL);
  await gateway.reload(ALL);
  expect(watchers('a')).toBe(1);
  stream.hangUp();
});
