// Calls to servers on stdio, also for programs that are no tests.
import { fileURLToPath } from 'node:url';
import {
  GATEWAY_CALLER,
  type UpstreamCaller,
  type UpstreamRequest,
} from '../../../src/mcp/upstream/upstream.ts';
import type { JsonObject } from '../../../src/platform/json.ts';
import type { StdioUpstreamConfig } from '../../../src/servers/stdio/stdio-config.ts';

/** The server of scripted-server.mjs, begun with these modes. */
export const scripted = (...modes: readonly string[]): Partial<StdioUpstreamConfig> => ({
  command: process.execPath,
  args: [supportFile('scripted-server.mjs'), ...modes],
});

export const supportFile = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export const STDIO_DEFAULTS: StdioUpstreamConfig = {
  kind: 'stdio',
  name: 'files',
  prefix: 'files',
  timeoutMs: 60_000,
  required: false,
  tools: { include: ['*'], exclude: [], describe: {} },
  command: process.execPath,
  args: [],
  secretArguments: [],
  env: {},
  proxyEnvironment: undefined,
  cwd: undefined,
  runAs: undefined,
  isolation: 'shared',
  maxProcesses: 20,
  idleSeconds: 300,
  era: 'auto',
  roots: false,
};

export const NO_CAPABILITIES = GATEWAY_CALLER.capabilities;

export const toCaller = (
  sub: string | undefined,
  members: Partial<UpstreamCaller> = {},
): UpstreamCaller => ({
  ...GATEWAY_CALLER,
  user: sub === undefined ? undefined : { sub, claims: {}, token: '' },
  ...members,
});

export const toRequest = (
  method: string,
  params: JsonObject = {},
  members: Partial<UpstreamRequest> = {},
): UpstreamRequest => ({
  method,
  params,
  signal: new AbortController().signal,
  trace: {},
  logLevel: undefined,
  ...members,
});

export const toCall = (
  name: string,
  args: JsonObject = {},
  members: Partial<UpstreamRequest> = {},
): UpstreamRequest => toRequest('tools/call', { name, arguments: args }, members);

export function textOf(result: JsonObject): string {
  const { content } = result;
  const [first]: unknown[] = Array.isArray(content) ? content : [];
  return typeof first === 'object' && first !== null && 'text' in first ? String(first.text) : '';
}
