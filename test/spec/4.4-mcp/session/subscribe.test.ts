// resources/subscribe and resources/unsubscribe with MCP_STREAMS=true.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createChangingResources, updated } from '../../../support/catalogs/changing-resources.ts';
import {
  clientOf,
  openClient,
  type SessionClient,
} from '../../../support/clients/session-client.ts';
import { manualClock, readAsTimePasses } from '../../../support/gateway/clock.ts';
import { startGateway } from '../../../support/gateway/gateway.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';
import { closeAfterTest } from '../../../support/lifetimes.ts';

const { catalog, change } = createChangingResources();
const STREAMS = { MCP_STREAMS: 'true' };
const EMPTY = { jsonrpc: '2.0', result: {}, id: 1 };

const gateway = useGateway({ env: STREAMS, deps: { catalog } });

const subscribe = (client: SessionClient, name: string) =>
  client.ask('resources/subscribe', { uri: `watched://${name}` });
const unsubscribe = (client: SessionClient, name: string) =>
  client.ask('resources/unsubscribe', { uri: `watched://${name}` });

describe('resources/subscribe', () => {
  test('§4.4 it answers {}, and each change is told on the stream', async () => {
    const client = await openClient(gateway);
    const stream = await client.watch();
    expect(await subscribe(client, 'a')).toEqual(EMPTY);
    for (const _ of [1, 2, 3]) {
      change('a');
      expect(await stream.next()).toEqual(updated('a'));
    }
    stream.hangUp();
  });

  test('§4.4 before a stream was opened it counts as well; what changed before is not told', async () => {
    const client = await openClient(gateway);
    await subscribe(client, 'a');
    await subscribe(client, 'b');
    change('b');
    const stream = await client.watch();
    change('a');
    expect(await stream.next()).toEqual(updated('a'));
    stream.hangUp();
  });

  test('§4.4 only what was subscribed is told, once, however often it was', async () => {
    const client = await openClient(gateway);
    const stream = await client.watch();
    await subscribe(client, 'b');
    await subscribe(client, 'b');
    change('a');
    change('b');
    expect(await stream.next()).toEqual(updated('b'));
    await subscribe(client, 'a');
    change('a');
    expect(await stream.next()).toEqual(updated('a'));
    stream.hangUp();
  });

  test('§4.4 after unsubscribe nothing is told', async () => {
    const client = await openClient(gateway);
    const stream = await client.watch();
    await subscribe(client, 'a');
    await subscribe(client, 'b');
    expect(await unsubscribe(client, 'a')).toEqual(EMPTY);
    change('a');
    change('b');
    expect(await stream.next()).toEqual(updated('b'));
    await subscribe(client, 'a');
    change('a');
    expect(await stream.next()).toEqual(updated('a'));
    stream.hangUp();
  });

  test('§4.4 unsubscribing what nobody subscribed is {}', async () => {
    expect(await unsubscribe(await openClient(gateway), 'b')).toEqual(EMPTY);
  });

  test('§3.1 a subscription is of its session alone', async () => {
    const [client, other] = [await openClient(gateway), await openClient(gateway)];
    const [stream, theirs] = [await client.watch(), await other.watch()];
    await subscribe(client, 'a');
    await subscribe(other, 'b');
    change('a');
    change('b');
    expect(await stream.next()).toEqual(updated('a'));
    expect(await theirs.next()).toEqual(updated('b'));
    const token = await gateway.issuer.sign({ sub: 'mallory' });
    const mallory = clientOf(await gateway.listen(), client.session, token);
    expect(await unsubscribe(mallory, 'a')).toMatchObject({
      error: { data: { reason: 'session_not_found' } },
    });
    change('a');
    expect(await stream.next()).toEqual(updated('a'));
    for (const one of [stream, theirs]) one.hangUp();
  });

  test.each([
    { what: 'does not tell when it changes', uri: 'watched://still', data: true },
    { what: 'does not exist', uri: 'watched://nowhere', data: true },
    { what: 'is no text', uri: 7, data: false },
    { what: 'is missing', uri: undefined, data: false },
  ])('§4.4 a resource that $what is -32602', async ({ uri, data }) => {
    const { error } = await (await openClient(gateway)).ask('resources/subscribe', {
      ...(uri !== undefined && { uri }),
    });
    expect(error).toMatchObject({ code: -32602, message: 'Invalid params' });
    expect(error.data.details).toContain('uri');
    expect(error.data.uri).toBe(data ? uri : undefined);
  });

  test('§4.4 the catalogue is watched once for all who listen, and then no more', async () => {
    const clock = manualClock();
    const watching = createChangingResources();
    const deps = { catalog: watching.catalog, clock };
    const watched = closeAfterTest(await startGateway({ env: STREAMS, deps }));
    const clients = await Promise.all([1, 2, 3].map(() => openClient(watched)));
    const streams = await Promise.all(clients.map((client) => client.watch()));
    expect(watching.watchers('a')).toBe(1);
    for (const stream of streams) stream.hangUp();
    await expect.poll(readAsTimePasses(clock, () => watching.watchers('a'))).toBe(0);
  });

  test('§3.1 a subscription outlives a restart', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postern-subscription-'));
    const env = { ...STREAMS, DATA_DIR: folder };
    const before = await startGateway({ env, deps: { catalog } });
    const client = await openClient(before);
    await subscribe(client, 'b');
    await before.gateway.close();
    const after = await startGateway({
      env: { ...env, OIDC_ISSUER: before.issuer.url },
      deps: { catalog },
    });
    try {
      const stream = await (await client.at(after)).watch();
      change('a');
      change('b');
      expect(await stream.next()).toEqual(updated('b'));
      stream.hangUp();
    } finally {
      await after.close();
      await before.issuer.close();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
