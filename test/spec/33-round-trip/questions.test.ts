// §33: what servers ask while a call goes on, and what clients answer, between the eras.
import { readFile, realpath } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { createEveryMember, type Value } from '../../support/clients/every-member.ts';
import { findPublishedSchemas } from '../../support/clients/published-schemas.ts';
import { lastOf, openClient } from '../../support/clients/session-client.ts';
import { askingCall, CLIENT_CAPABILITIES } from '../../support/clients/stateless.ts';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { INSTALLATION_MS, installConformance } from '../../support/tools/conformance.ts';
import { startCatalogGateway } from '../../support/upstreams/catalog-gateway.ts';
import {
  sendJson,
  startEvents,
  startScriptedHttp,
  toEvent,
  toResult,
} from '../../support/upstreams/scripted-http.ts';

const ABLE = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };

const FORM = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Name', minLength: 1, maxLength: 9, default: 'Ada' },
    many: { type: 'array', items: { type: 'string', enum: ['a', 'b'] } },
  },
  required: ['name'],
};

const published = useShared(async () => {
  const { script } = await installConformance();
  const found = findPublishedSchemas(await readFile(await realpath(script), 'utf8'));
  const schema = found.get('2026-07-28');
  if (schema === undefined) throw new Error('There is no schema of 2026-07-28');
  const everyMember = createEveryMember(schema, {
    'ElicitRequestFormParams.requestedSchema': [FORM],
    'ElicitResult.content': [{ name: 'Ada', many: ['a'] }],
    'ToolUseContent.input': [{ a: 1 }],
    'Tool.inputSchema': [{ type: 'object' }],
    'Tool.outputSchema': [{ type: 'object' }],
  });
  return { ...everyMember, close: async () => {} };
}, INSTALLATION_MS);

/** A server that asks this in each call, and says what it heard. */
async function start(era: 'session' | 'stateless', question: Value) {
  const heard: unknown[] = [];
  const server = closeAfterTest(await startScriptedHttp(era));
  const done = era === 'stateless' ? { resultType: 'complete' } : {};
  const result = { ...done, content: [] };
  server.answer('tools/list', (res, request) =>
    sendJson(
      res,
      toResult(request, { ...done, tools: [{ name: 't', inputSchema: { type: 'object' } }] }),
    ),
  );
  let open: { readonly stream: ServerResponse; readonly answer: unknown } | undefined;
  server.answer('tools/call', (res, request) => {
    const { inputResponses } = Object(request.message.params);
    if (era === 'session') {
      const stream = startEvents(res, { jsonrpc: '2.0', id: 'q', ...question });
      open = { stream, answer: toResult(request, result) };
    } else if (inputResponses === undefined) {
      const asked = {
        resultType: 'input_required',
        inputRequests: { q: question },
        requestState: 's',
      };
      sendJson(res, toResult(request, asked));
    } else {
      heard.push(inputResponses.q);
      sendJson(res, toResult(request, result));
    }
  });
  server.answer('response', (res, { message }) => {
    heard.push(message.result);
    res.writeHead(202).end();
    open?.stream.end(toEvent(open.answer));
  });
  const gateway = closeAfterTest(
    await startCatalogGateway({
      file: { mcpServers: { it: { url: server.url, era, prefix: '', roots: true } } },
      env: { AUTH_REQUIRED: 'false' },
    }),
  );
  return { gateway, heard };
}

type Started = Awaited<ReturnType<typeof start>>;

/** What the client was asked. */
async function callInSession({ gateway }: Started, answer: Value): Promise<Value> {
  const client = await openClient(gateway, { capabilities: ABLE });
  const stream = await client.call('t');
  const asked = Object(await stream.next());
  expect(await client.answer(asked.id, answer)).toBe(202);
  await lastOf(stream);
  return asked;
}

async function callStateless({ gateway }: Started, answer: Value): Promise<Value> {
  const meta = { [CLIENT_CAPABILITIES]: ABLE };
  const { json } = await askingCall(gateway, 't', {}, { meta });
  const { inputRequests, requestState } = json.result;
  const [[key, asked] = ['', {}]] = Object.entries<Value>(inputRequests);
  await askingCall(gateway, 't', { inputResponses: { [key]: answer }, requestState }, { meta });
  return asked;
}

const CLIENTS = { session: callInSession, stateless: callStateless } as const;

const PAIRS = (['session', 'stateless'] as const).flatMap((server) =>
  (['session', 'stateless'] as const).map((client) => ({ server, client })),
);

const QUESTIONS = [
  ['elicitation/create', 'ElicitRequestFormParams', 'ElicitResult'],
  ['elicitation/create', 'ElicitRequestURLParams', 'ElicitResult'],
  ['sampling/createMessage', 'CreateMessageRequestParams', 'CreateMessageResult'],
  ['roots/list', 'no params', 'ListRootsResult'],
] as const;

test.each(
  PAIRS.flatMap((eras) => QUESTIONS.map((row) => [eras.server, eras.client, ...row] as const)),
)(
  '§33 round trip: a server of the %s era asks a client of the %s era: %s with every member (%s), and gets the answer with every member (%s)',
  async (serverEra, clientEra, method, definition, answered) => {
    const [params = {}] = definition === 'no params' ? [] : published.list(definition);
    const [answer = {}] = published.list(answered);
    const isUrl = definition === 'ElicitRequestURLParams';
    const question = {
      method,
      params: isUrl && serverEra === 'session' ? { ...params, elicitationId: 'e' } : params,
    };
    const started = await start(serverEra, question);
    const asked = await CLIENTS[clientEra](started, answer);
    const { includeContext, ...passed } = params;
    const shown = Object.fromEntries(
      Object.entries(passed).map(([name, value]) => [
        name,
        name === 'message' || name === 'systemPrompt' ? `it asks: ${value}` : value,
      ]),
    );
    expect(asked).toMatchObject({ method, ...(definition !== 'no params' && { params: shown }) });
    expect(includeContext === undefined).toBe(method !== 'sampling/createMessage');
    expect(Object(asked.params)).not.toHaveProperty('includeContext');
    expect(started.heard).toEqual([answer]);
  },
);
