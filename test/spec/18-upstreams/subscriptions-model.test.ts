// Subscriptions with two replicas, as a model of them: commands in any order; whoever is subscribed hears each change
// once, nobody else hears of it, and the server is asked for what somebody wants, and for nothing else.
import { setTimeout as wait } from 'node:timers/promises';
import {
  type AsyncCommand,
  assert,
  asyncModelRun,
  asyncProperty,
  commands,
  constantFrom,
  nat,
  record,
} from 'fast-check';
import { expect, test } from 'vitest';
import type { EventStream } from '../../support/clients/event-stream.ts';
import { openClient, type SessionClient } from '../../support/clients/session-client.ts';
import { type ManualClock, manualClock } from '../../support/gateway/clock.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startRedis } from '../../support/stores/redis.ts';
import { chooseCount } from '../../support/tools/long-run.ts';
import {
  type CatalogGateway,
  startCatalogGateway,
} from '../../support/upstreams/catalog-gateway.ts';
import {
  describeWatchedProcesses,
  RESOURCES,
  startWatchedHttp,
  type WatchedServer,
} from '../../support/upstreams/watched-server.ts';

const redis = useShared(startRedis);

const [FIRST, SECOND, FENCE] = RESOURCES;
const CLIENTS = 3;
const REPLICAS = 2;
const BATCH_MS = 250;
/** Streams to a server that ends them again and again are opened ever later. */
const MAX_RESTARTS = 2;
const PATIENT = { timeout: 15_000, interval: 5 };
/** The clock goes ten times as fast: what waits for it is not waited for. */
const TICK_MS = 50;
const TICK_EVERY_MS = 5;
/** So much of the replicas' time a command may take before a stream ends by its age. */
const MAX_AGE_MS = 100_000;

/** What is known of each client; it never unsubscribes from the fence. */
interface Model {
  readonly clients: { readonly uris: Set<string>; streamAt: number | undefined }[];
  restarts: number;
}

interface World {
  readonly server: WatchedServer;
  readonly clock: ManualClock;
  /** Its tokens are good at both replicas. */
  readonly issuer: CatalogGateway['issuer'];
  readonly replicas: Replica[];
  readonly clients: Client[];
  stopClock(): void;
}

interface Replica {
  readonly gateway: CatalogGateway;
  /** A client that subscribes to nothing. */
  readonly probe: SessionClient;
}

interface Client {
  session: SessionClient;
  stream: EventStream | undefined;
  /** By the clock of the replicas. */
  openedAt: number;
}

type Command = AsyncCommand<Model, World>;

function pick<Item>(items: readonly Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new Error(`There is no ${index}.`);
  return item;
}

/** The client at the replica. */
const at = ({ clients, replicas }: World, client: number, replica: number) =>
  pick(clients, client).session.at(pick(replicas, replica).gateway);

async function startReplica(
  { entry }: WatchedServer,
  clock: ManualClock,
  issuer?: CatalogGateway['issuer'],
): Promise<Replica> {
  const gateway = await startCatalogGateway({
    file: { mcpServers: { s: entry } },
    env: {
      MCP_STREAMS: 'true',
      REDIS_URL: redis.url,
      RATE_LIMIT_ENABLED: 'false',
      ...(issuer !== undefined && { OIDC_ISSUER: issuer.url }),
    },
    clock,
  });
  // Where it is one of several, its own issuer is of no use.
  if (issuer !== undefined) await gateway.issuer.close();
  const token = await (issuer ?? gateway.issuer).sign({ sub: 'probe' });
  const probe = await openClient(gateway, { token });
  await gateway.listNames('resources/list', probe.session, token);
  return { gateway, probe };
}

async function subscribe(session: SessionClient, uri: string): Promise<void> {
  expect(await session.ask('resources/subscribe', { uri })).toMatchObject({ result: {} });
}

/** Everybody is told in time: what should be is so, and what the server is asked for is what somebody wants. */
async function settle(model: Model, { server, replicas }: World): Promise<void> {
  const wanted = new Set(model.clients.flatMap(({ uris }) => [...uris]));
  const streams = model.clients.filter(({ streamAt }) => streamAt !== undefined);
  await expect
    .poll(async () => {
      if ((server.countStreams(REPLICAS) ?? streams.length) !== streams.length) {
        return `${server.countStreams(REPLICAS)} streams`;
      }
      for (const [index, { probe }] of replicas.entries()) {
        const asked: readonly string[] = await server.listWanted(probe).catch(() => []);
        const heard = streams.filter(({ streamAt }) => server.isForAll || streamAt === index);
        const missing = heard
          .flatMap(({ uris }) => [...uris])
          .filter((uri) => !asked.includes(uri));
        const excess = asked.filter((uri) => !wanted.has(uri));
        if (missing.length + excess.length > 0) return { index, missing, excess };
      }
      return 'settled';
    }, PATIENT)
    .toBe('settled');
}

/** Lists change as well while processes start. */
const isUpdate = ({ method }: { readonly method: string }): boolean =>
  method === 'notifications/resources/updated';

/** All that a stream tells until the fence. */
async function readToFence(stream: EventStream): Promise<readonly string[]> {
  const heard: string[] = [];
  for (;;) {
    const message = await stream.next();
    if (message === undefined) throw new Error('The stream has ended.');
    if (!isUpdate(message)) continue;
    if (message.params.uri === FENCE) return heard;
    heard.push(message.params.uri);
  }
}

/** What is told in this order arrives in this order: behind the fence nothing of the change can come. */
async function announce(model: Model, world: World, uri: string, replica: number): Promise<void> {
  const { probe } = pick(world.replicas, replica);
  // A replica that was started again has asked its process for nothing until somebody comes back: then it says nothing.
  if (!(await world.server.listWanted(probe)).includes(FENCE)) return;
  await world.server.announce(uri, probe);
  await world.server.announce(FENCE, probe);
  await Promise.all(
    world.clients.map(async ({ stream }, index) => {
      if (stream === undefined) return;
      const isWanted = pick(model.clients, index).uris.has(uri);
      expect(await readToFence(stream)).toEqual(isWanted ? [uri] : []);
    }),
  );
  // What is told often is told in batches: of this change nothing waits for a stream that is opened later.
  for (let time = 0; time < 4; time += 1) {
    world.clock.advance(BATCH_MS);
    await wait(1);
  }
}

async function beginSession(world: World, client: number, replica: number): Promise<void> {
  const token = await world.issuer.sign({ sub: `user-${client}` });
  const session = await openClient(pick(world.replicas, replica).gateway, { token });
  world.clients[client] = { session, stream: undefined, openedAt: 0 };
  await subscribe(session, FENCE);
}

async function openStream(
  model: Model,
  world: World,
  client: number,
  replica: number,
): Promise<void> {
  const known = pick(world.clients, client);
  const former = known.stream;
  const formerlyAt = pick(model.clients, client).streamAt;
  const opened = world.server.countOpened();
  known.stream = await (await at(world, client, replica)).watch();
  known.openedAt = world.clock.now();
  pick(model.clients, client).streamAt = replica;
  const left = (await former?.rest()) ?? [];
  expect(left.filter(isUpdate)).toEqual([]);
  // The other replica hears the server by a stream of its own; until the former one's ends there may be as many as before.
  if (opened === undefined || formerlyAt === undefined || formerlyAt === replica) return;
  await expect.poll(() => world.server.countOpened(), PATIENT).toBeGreaterThan(opened);
}

/** A stream ends after five minutes: on a busy machine, where a command takes long, clients open theirs again in time. */
async function openOldStreamsAgain(model: Model, world: World): Promise<void> {
  for (const [client, { stream, openedAt }] of world.clients.entries()) {
    const { streamAt } = pick(model.clients, client);
    if (stream === undefined || streamAt === undefined) continue;
    if (world.clock.now() - openedAt > MAX_AGE_MS) await openStream(model, world, client, streamAt);
  }
}

function createCommand(
  name: string,
  run: (model: Model, world: World) => Promise<void>,
  check: (model: Readonly<Model>) => boolean = () => true,
): Command {
  return {
    check,
    async run(model, world) {
      await openOldStreamsAgain(model, world);
      await run(model, world);
      await settle(model, world);
    },
    toString: () => name,
  };
}

const where = { client: nat(CLIENTS - 1), replica: nat(REPLICAS - 1) };
const changed = constantFrom(FIRST, SECOND);

const COMMANDS = [
  record({ ...where, uri: changed }).map(({ client, replica, uri }) =>
    createCommand(`${client} subscribes to ${uri} at ${replica}`, async (model, world) => {
      await subscribe(await at(world, client, replica), uri);
      pick(model.clients, client).uris.add(uri);
    }),
  ),
  record({ ...where, uri: changed }).map(({ client, replica, uri }) =>
    createCommand(`${client} unsubscribes from ${uri} at ${replica}`, async (model, world) => {
      const session = await at(world, client, replica);
      const answer = await session.ask('resources/unsubscribe', { uri });
      expect(answer).toMatchObject({ result: {} });
      pick(model.clients, client).uris.delete(uri);
    }),
  ),
  record(where).map(({ client, replica }) =>
    createCommand(`${client} opens its stream at ${replica}`, (model, world) =>
      openStream(model, world, client, replica),
    ),
  ),
  nat(CLIENTS - 1).map((client) =>
    createCommand(
      `${client} hangs up`,
      async (model, { clients }) => {
        pick(clients, client).stream?.hangUp();
        pick(clients, client).stream = undefined;
        pick(model.clients, client).streamAt = undefined;
      },
      ({ clients }) => pick(clients, client).streamAt !== undefined,
    ),
  ),
  record(where).map(({ client, replica }) =>
    createCommand(`${client} ends its session at ${replica}`, async (model, world) => {
      expect(await (await at(world, client, replica)).end()).toBe(204);
      await beginSession(world, client, replica);
      model.clients[client] = { uris: new Set<string>([FENCE]), streamAt: undefined };
    }),
  ),
  record({ uri: changed, replica: where.replica }).map(({ uri, replica }) =>
    createCommand(`the server tells ${replica} that ${uri} has changed`, (model, world) =>
      announce(model, world, uri, replica),
    ),
  ),
  where.replica.map((replica) =>
    createCommand(
      `the server of ${replica} is started again`,
      async (model, world) => {
        model.restarts += 1;
        await world.server.restart(pick(world.replicas, replica).probe);
      },
      ({ restarts }) => restarts < MAX_RESTARTS,
    ),
  ),
  where.replica.map((replica) =>
    createCommand(`${replica} is started again`, async (model, world) => {
      const { gateway } = pick(world.replicas, replica);
      await gateway.gateway.close();
      for (const [index, client] of model.clients.entries()) {
        if (client.streamAt !== replica) continue;
        client.streamAt = undefined;
        pick(world.clients, index).stream = undefined;
      }
      world.replicas[replica] = await startReplica(world.server, world.clock, world.issuer);
    }),
  ),
];

async function startWorld(start: () => Promise<WatchedServer>): Promise<World> {
  const clock = manualClock();
  const ticking = setInterval(() => clock.advance(TICK_MS), TICK_EVERY_MS);
  const server = await start();
  const first = await startReplica(server, clock);
  const { issuer } = first.gateway;
  const second = await startReplica(server, clock, issuer);
  const world: World = {
    server,
    clock,
    issuer,
    replicas: [first, second],
    clients: [],
    stopClock: () => clearInterval(ticking),
  };
  for (let client = 0; client < CLIENTS; client += 1) {
    await beginSession(world, client, client % REPLICAS);
  }
  return world;
}

async function closeWorld({ server, issuer, replicas, clients, stopClock }: World): Promise<void> {
  for (const { stream } of clients) stream?.hangUp();
  for (const { gateway } of replicas) await gateway.gateway.close();
  await issuer.close();
  await server.close();
  stopClock();
}

const createModel = (): Model => ({
  clients: Array.from({ length: CLIENTS }, () => ({
    uris: new Set<string>([FENCE]),
    streamAt: undefined,
  })),
  restarts: 0,
});

/** Where all sessions have ended, the server is asked for nothing any more. */
async function endSessions(model: Model, world: World): Promise<void> {
  for (const [index, client] of model.clients.entries()) {
    expect(await (await at(world, index, index % REPLICAS)).end()).toBe(204);
    client.uris.clear();
    client.streamAt = undefined;
  }
  await settle(model, world);
}

test.each([
  ['sessions', () => startWatchedHttp('session')],
  ['streams of the stateless era', () => startWatchedHttp('stateless')],
  ['a process at each replica', async () => describeWatchedProcesses()],
] as const)(
  '§18.3 subscriptions at a server with %s: whoever is subscribed hears each change once, and nobody else',
  async (_title, start) => {
    const property = asyncProperty(
      commands(COMMANDS, { maxCommands: 20, size: 'max' }),
      async (generated) => {
        const world = await startWorld(start);
        const model = createModel();
        try {
          await asyncModelRun(() => ({ model, real: world }), generated);
          await endSessions(model, world);
        } finally {
          await closeWorld(world);
        }
      },
    );
    await assert(property, { numRuns: chooseCount(1, 20), interruptAfterTimeLimit: 60_000 });
  },
  600_000,
);
