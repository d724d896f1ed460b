// What the service says of its own accord, against the published schemas of each revision.
import { afterEach, beforeAll, expect, test } from 'vitest';
import {
  createEveryFeatureCatalog,
  type EveryFeatureCatalog,
} from '../../support/catalogs/every-feature-catalog.ts';
import { type EventStream, openEvents } from '../../support/clients/event-stream.ts';
import { loadMcpSchemas, type McpSchemas } from '../../support/clients/mcp-schemas.ts';
import {
  openRevisionClient,
  REVISIONS,
  type RevisionClient,
  SESSION_REVISIONS,
} from '../../support/clients/revision-client.ts';
import { STATELESS } from '../../support/clients/stateless.ts';
import { BASE_URL } from '../../support/gateway/gateway.ts';
import { useFreshGateway } from '../../support/gateway/use-gateway.ts';
import { INSTALLATION_MS, installConformance } from '../../support/tools/conformance.ts';

let schemas: McpSchemas;
let rich: EveryFeatureCatalog;
const gateway = useFreshGateway(() => {
  rich = createEveryFeatureCatalog();
  return {
    env: { MCP_STREAMS: 'true', MCP_RATE_LIMIT_MAX: '20' },
    deps: { catalog: rich.catalog },
  };
});
const open: EventStream[] = [];

beforeAll(async () => {
  schemas = await loadMcpSchemas(await installConformance());
}, INSTALLATION_MS);

afterEach(() => {
  for (const { hangUp } of open.splice(0)) hangUp();
});

const LOCAL = { host: new URL(BASE_URL).host, accept: 'application/json, text/event-stream' };

type Params = Readonly<Record<string, unknown>>;

async function stream(
  client: RevisionClient,
  method: string,
  params: Params,
): Promise<EventStream> {
  const { message, headers } = await client.request(method, params);
  return listenTo({ body: message, headers: { ...headers, ...LOCAL } });
}

async function listenTo(
  asked: Omit<Parameters<typeof openEvents>[0], 'port'>,
): Promise<EventStream> {
  const events = await openEvents({ port: await gateway.listen(), ...asked });
  open.push(events);
  expect(events.isStream).toBe(true);
  return events;
}

const CHATTY = [
  'notifications/progress',
  'notifications/progress',
  'notifications/progress',
  'notifications/message',
  'notifications/message',
  'notifications/message',
];

test.each(
  REVISIONS.flatMap((revision) => [1, 'a'].map((progressToken) => ({ revision, progressToken }))),
)(
  '§4.4 schemas: in $revision a tool speaks while it works, under the token $progressToken',
  async ({ revision, progressToken }) => {
    const client = await openRevisionClient(gateway, revision);
    if (client.session !== undefined) await client.ask('logging/setLevel', { level: 'debug' });
    const params = { name: 'chatty', _meta: { progressToken } };
    const all = await (await stream(client, 'tools/call', params)).rest();
    const last = all.pop();
    expect(all.map(({ method }) => method)).toEqual(CHATTY);
    for (const message of all) expect(schemas.messageProblems(revision, message)).toEqual([]);
    expect(last).toHaveProperty('result.content');
    expect(schemas.responseProblems(revision, 'tools/call', last)).toEqual([]);
  },
);

const ANSWERS = {
  form: { action: 'accept', content: { name: 'Ada' } },
  model: { role: 'assistant', model: 'small', content: { type: 'text', text: 'Hello.' } },
  folders: { roots: [{ uri: 'file:///a' }] },
};

test.each(
  SESSION_REVISIONS.flatMap((revision) =>
    (['form', 'model', 'folders'] as const).map((only) => ({ revision, only })),
  ).filter(({ revision, only }) => revision !== '2025-03-26' || only !== 'form'),
)('§4.4 schemas: in $revision the client is asked for its $only', async ({ revision, only }) => {
  const client = await openRevisionClient(gateway, revision);
  const call = { name: 'asks', arguments: { only } };
  const events = await stream(client, 'tools/call', call);
  const question = await events.next();
  expect(schemas.messageProblems(revision, question)).toEqual([]);
  const { headers } = await client.request('ping');
  const answer = { jsonrpc: '2.0', id: question.id, result: ANSWERS[only] };
  expect((await gateway.rpc(answer, { headers })).status).toBe(202);
  const last = await events.next();
  expect(last.result.content).toEqual([{ type: 'text', text: `Answered: ${only}.` }]);
  expect(schemas.responseProblems(revision, 'tools/call', last)).toEqual([]);
});

test.each(SESSION_REVISIONS)(
  '§4.4 schemas: in %s a call that the client cancels ends in an error',
  async (revision) => {
    const client = await openRevisionClient(gateway, revision);
    const events = await stream(client, 'tools/call', {
      name: 'asks',
      arguments: { only: 'folders' },
    });
    await events.next();
    const { headers } = await client.request('ping');
    const params = { requestId: 1 };
    await gateway.rpc({ jsonrpc: '2.0', method: 'notifications/cancelled', params }, { headers });
    const last = await events.next();
    expect(last).toMatchObject({ id: 1, error: { data: { reason: 'request_cancelled' } } });
    expect(schemas.responseProblems(revision, 'tools/call', last)).toEqual([]);
  },
);

test.each(SESSION_REVISIONS)(
  '§4.4 schemas: in %s a session is told of a resource that changed',
  async (revision) => {
    const client = await openRevisionClient(gateway, revision);
    const { headers } = await client.request('ping');
    const events = await listenTo({ method: 'GET', headers: { ...headers, ...LOCAL } });
    await client.ask('resources/subscribe', { uri: 'memo://watched' });
    rich.changed();
    const message = await events.next();
    expect(message.method).toBe('notifications/resources/updated');
    expect(schemas.messageProblems(revision, message)).toEqual([]);
  },
);

test('§4.4 schemas: 2026-07-28 acknowledges who listens, tells, and says that it ends', async () => {
  const client = await openRevisionClient(gateway, STATELESS);
  const uris = ['memo://watched', 'memo://nobody'];
  const events = await stream(client, 'subscriptions/listen', {
    notifications: { resourceSubscriptions: uris, toolsListChanged: true },
  });
  const acknowledged = await events.next();
  expect(acknowledged.method).toBe('notifications/subscriptions/acknowledged');
  rich.changed();
  const updated = await events.next();
  expect(updated.method).toBe('notifications/resources/updated');
  for (const message of [acknowledged, updated]) {
    expect(schemas.messageProblems(STATELESS, message)).toEqual([]);
  }
  const ended = gateway.close();
  const last = await events.next();
  await ended;
  expect(last).toHaveProperty('result');
  expect(schemas.responseProblems(STATELESS, 'subscriptions/listen', last)).toEqual([]);
});

test.each(REVISIONS)(
  '§4.4 schemas: in %s arguments that do not fit are told in its own way',
  async (revision) => {
    const { ask } = await openRevisionClient(gateway, revision);
    const { json } = await ask('tools/call', { name: 'echo', arguments: { text: 1 } });
    const isResult = revision >= '2025-11-25';
    expect(json).toHaveProperty(isResult ? 'result.isError' : 'error.data.details');
    expect(schemas.responseProblems(revision, 'tools/call', json)).toEqual([]);
  },
);

test.each(REVISIONS)('§7 schemas: in %s too many calls end in an error', async (revision) => {
  const { ask } = await openRevisionClient(gateway, revision);
  const answers = await Promise.all(Array.from({ length: 21 }, () => ask('tools/list')));
  const refused = answers.find(({ status }) => status === 429);
  const { id, ...error } = refused?.json ?? {};
  // MCP's schemas have no word for the id that is not known yet.
  expect(id).toBeNull();
  expect(schemas.responseProblems(revision, 'tools/list', { ...error, id: 1 })).toEqual([]);
});
