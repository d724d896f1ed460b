// §26.2: what a guard is told.

import type { GuardCaller, GuardedItem, GuardPoint } from './guards.ts';

/** As a module gets it. */
export interface AskedMessage {
  readonly guard: string;
  readonly on: GuardPoint;
  /** Of MCP: `tools/call` for a tool's arguments and for its result. */
  readonly method: string;
  readonly phase: GuardPhase;
  /** `''` for the built-in catalogue. */
  readonly server: string;
  /** Of the tool or prompt as clients of `/mcp` see it, or the URI; left out where it is about a server as a whole. */
  readonly name?: string | undefined;
  readonly value: unknown;
  readonly user?: AskedUser | undefined;
  /** OAuth client ID. */
  readonly client?: string | undefined;
  readonly view?: string | undefined;
  readonly requestId?: string | number | undefined;
  /** W3C Trace Context. */
  readonly traceparent?: string | undefined;
}

export type GuardPhase = 'request' | 'response';

/** Who calls: what the token says, never the token. */
interface AskedUser {
  readonly sub: string;
  readonly issuer?: string | undefined;
  readonly email?: string | undefined;
  readonly groups?: readonly string[] | undefined;
}

export const POINTS = {
  'tools/list': { method: 'tools/list', phase: 'response' },
  'tools/call': { method: 'tools/call', phase: 'request' },
  'tools/result': { method: 'tools/call', phase: 'response' },
  'prompts/list': { method: 'prompts/list', phase: 'response' },
  'prompts/get': { method: 'prompts/get', phase: 'request' },
  'prompts/result': { method: 'prompts/get', phase: 'response' },
  'resources/list': { method: 'resources/list', phase: 'response' },
  'resources/read': { method: 'resources/read', phase: 'request' },
  'resources/result': { method: 'resources/read', phase: 'response' },
  'resources/subscribe': { method: 'resources/subscribe', phase: 'request' },
  'skills/list': { method: 'skills/list', phase: 'response' },
  'completion/complete': { method: 'completion/complete', phase: 'request' },
  'completion/result': { method: 'completion/complete', phase: 'response' },
  instructions: { method: 'server/instructions', phase: 'response' },
  sampling: { method: 'sampling/createMessage', phase: 'request' },
  'sampling/result': { method: 'sampling/createMessage', phase: 'response' },
  elicitation: { method: 'elicitation/create', phase: 'request' },
  'elicitation/result': { method: 'elicitation/create', phase: 'response' },
  roots: { method: 'roots/list', phase: 'request' },
  'roots/result': { method: 'roots/list', phase: 'response' },
  notifications: { method: 'notifications', phase: 'request' },
  approval: { method: 'approval', phase: 'request' },
} as const satisfies Readonly<
  Record<GuardPoint, { readonly method: string; readonly phase: GuardPhase }>
>;

export function describeMessage(
  guard: string,
  on: GuardPoint,
  { name, server }: GuardedItem,
  value: unknown,
  caller: GuardCaller | undefined,
): AskedMessage {
  const { method, phase } = POINTS[on];
  const named = name === '' ? undefined : name;
  if (caller === undefined) return { guard, on, method, phase, server, name: named, value };
  const { user, clientId, view, requestId, trace } = caller;
  // One literal: spread from parts it took longer than all else that is done for a guard in this process.
  return {
    guard,
    on,
    method,
    phase,
    server,
    name: named,
    value,
    user: user && describeUser(user),
    client: clientId,
    view,
    requestId,
    traceparent: trace.traceparent,
  };
}

const describeUser = ({
  sub,
  issuer,
  email,
  groups,
}: NonNullable<GuardCaller['user']>): AskedUser => ({ sub, issuer, email, groups });

/** Of each point a value in which there is nothing, for who only asks whether a guard answers. */
export const SAMPLES: Readonly<Record<GuardPoint, unknown>> = {
  'tools/list': { name: 'postern-check', inputSchema: { type: 'object' } },
  'tools/call': { name: 'postern-check', arguments: {} },
  'tools/result': { content: [] },
  'prompts/list': { name: 'postern-check' },
  'prompts/get': { name: 'postern-check', arguments: {} },
  'prompts/result': { messages: [] },
  'resources/list': { uri: 'check:postern', name: 'postern-check' },
  'resources/read': { uri: 'check:postern' },
  'resources/result': { contents: [] },
  'resources/subscribe': { uri: 'check:postern' },
  'skills/list': {
    uri: 'check:postern/check/SKILL.md',
    frontmatter: { name: 'check', description: 'check' },
    resources: 'dynamic',
  },
  'completion/complete': {
    ref: { type: 'ref/prompt', name: 'postern-check' },
    argument: { name: 'check', value: '' },
  },
  'completion/result': { completion: { values: [] } },
  instructions: '',
  sampling: { messages: [], maxTokens: 1 },
  'sampling/result': { role: 'assistant', model: '', content: { type: 'text', text: '' } },
  elicitation: { message: '', requestedSchema: { type: 'object', properties: {} } },
  'elicitation/result': { action: 'cancel' },
  roots: {},
  'roots/result': { roots: [] },
  notifications: { method: 'notifications/message', params: { level: 'debug', data: '' } },
  approval: { name: 'postern-check', arguments: {} },
};
