// One valid request of every method in either era, for the rich catalogue.

import type { Sample } from '../../support/fuzz/mutation-steps.ts';
import { INITIALIZE_REQUEST } from '../../support/gateway/gateway.ts';

type Params = Extract<Sample['message'], { readonly [key: string]: unknown }>;

const BOTH: Readonly<Record<string, readonly Params[]>> = {
  'tools/list': [{}, { cursor: Buffer.from('structured').toString('base64url') }],
  'tools/call': [
    { name: 'echo', arguments: { text: 'Hi.', times: 2, kind: 'loud', list: [1, 2.5] } },
    { name: 'tree', arguments: { value: 1, children: [{ value: 2, children: [] }] } },
    { name: 'chatty', arguments: {}, _meta: { progressToken: 'p' } },
    { name: 'asks', arguments: { about: { a: [1] } } },
    { name: 'structured' },
  ],
  'prompts/list': [{}],
  'prompts/get': [{ name: 'every_kind', arguments: { colour: 'red', mood: 'good' } }],
  'resources/list': [{}],
  'resources/templates/list': [{}],
  'resources/read': [{ uri: 'memo://text' }, { uri: 'memo://of/ada/a/b%20c' }],
  'completion/complete': [
    {
      ref: { type: 'ref/prompt', name: 'every_kind' },
      argument: { name: 'colour', value: 'r' },
      context: { arguments: { mood: 'good' } },
    },
    {
      ref: { type: 'ref/resource', uri: 'memo://of/{who}/{+path}' },
      argument: { name: 'who', value: 'a' },
    },
  ],
};

const IN_SESSIONS: Readonly<Record<string, readonly Params[]>> = {
  ping: [{}],
  'logging/setLevel': [{ level: 'warning' }],
  'resources/subscribe': [{ uri: 'memo://watched' }],
  'resources/unsubscribe': [{ uri: 'memo://watched' }],
};

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { elicitation: {}, sampling: {}, roots: {} },
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/logLevel': 'info',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
};

const STATELESS_ONLY: Readonly<Record<string, readonly Params[]>> = {
  'server/discover': [{}],
  'subscriptions/listen': [{ notifications: { resourceSubscriptions: ['memo://watched'] } }],
};

const ANSWERS = {
  name: 'asks',
  arguments: { about: { a: [1] } },
  inputResponses: {
    model: { role: 'assistant', content: { type: 'text', text: 'Hello.' }, model: 'small' },
    folders: { roots: [{ uri: 'file:///a', name: 'a' }] },
  },
};
const FORM = { form: { action: 'accept', content: { name: 'Ada', metres: 1.5 } } };

/** Each of them costs as much as a hundred others. */
export const WITH_A_FORM = 'answers with a form';

const JSON_TYPE = { 'content-type': 'application/json' };
const BOTH_TYPES = { accept: 'application/json, text/event-stream', ...JSON_TYPE };

export function sessionSamples(session: string): readonly Sample[] {
  const headers = {
    ...BOTH_TYPES,
    'mcp-session-id': session,
    'mcp-protocol-version': '2025-11-25',
  };
  return [
    { name: 'initialize', headers: BOTH_TYPES, message: INITIALIZE_REQUEST },
    ...samplesOf({ ...IN_SESSIONS, ...BOTH }, (method, params, at) => ({
      name: `${method} ${at} in a session`,
      headers,
      message: { jsonrpc: '2.0', id: at, method, params },
    })),
    {
      name: 'a notification',
      headers,
      message: {
        jsonrpc: '2.0',
        method: 'notifications/cancelled',
        params: { requestId: 'never', reason: 'None.' },
      },
    },
    {
      name: 'an answer',
      headers,
      message: { jsonrpc: '2.0', id: 'q', result: { action: 'accept', content: { a: [1] } } },
    },
  ];
}

/** `requestState` is of the call of `asks` in the first round. */
export function statelessSamples(requestState: string): readonly Sample[] {
  const again = statelessSample('tools/call', { ...ANSWERS, requestState }, 9);
  return [
    ...samplesOf({ ...STATELESS_ONLY, ...BOTH }, statelessSample),
    { ...statelessSample('tools/call', ANSWERS, 8), name: 'answers' },
    { ...again, name: 'answers with a state' },
    {
      ...statelessSample('tools/call', { ...ANSWERS, inputResponses: FORM, requestState }, 7),
      name: WITH_A_FORM,
    },
  ];
}

function statelessSample(method: string, params: Params, at: number): Sample {
  const subject = params.name ?? params.uri;
  const { _meta } = params;
  const meta = typeof _meta === 'object' && !Array.isArray(_meta) ? _meta : {};
  return {
    name: `${method} ${at} without a session`,
    headers: {
      ...BOTH_TYPES,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof subject === 'string' && { 'mcp-name': subject }),
    },
    message: {
      jsonrpc: '2.0',
      id: `s${at}`,
      method,
      params: { ...params, _meta: { ...META, ...meta } },
    },
  };
}

const samplesOf = (
  methods: Readonly<Record<string, readonly Params[]>>,
  make: (method: string, params: Params, at: number) => Sample,
): readonly Sample[] =>
  Object.entries(methods).flatMap(([method, all]) =>
    all.map((params, at) => make(method, params, at)),
  );
