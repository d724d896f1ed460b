// Who asks, and what: short forms for tests of servers behind the gateway.
import { randomUUID } from 'node:crypto';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  type UpstreamRequest,
} from '../../../src/mcp/upstream/upstream.ts';
import type { JsonObject } from '../../../src/platform/json.ts';

export const NO_CAPABILITIES = GATEWAY_CALLER.capabilities;

export const ALL_CAPABILITIES = { elicitation: true, sampling: true, roots: true };

export function sessionCaller(given: Partial<UpstreamCaller> = {}): UpstreamCaller {
  return {
    user: { sub: 'ada', claims: { sub: 'ada' }, token: 'the token of ada' },
    clientId: 'client',
    sessionId: randomUUID(),
    capabilities: ALL_CAPABILITIES,
    ...given,
  };
}

export const statelessCaller = (given: Partial<UpstreamCaller> = {}): UpstreamCaller =>
  sessionCaller({ sessionId: undefined, ...given });

export const toRequest = (
  method: string,
  params: JsonObject,
  given: Partial<UpstreamRequest> = {},
): UpstreamRequest => ({
  method,
  params,
  signal: new AbortController().signal,
  trace: {},
  logLevel: undefined,
  ...(typeof params.name === 'string' && { name: params.name }),
  ...given,
});

export const callTool = (
  upstream: Upstream,
  caller: UpstreamCaller,
  name: string,
  args: JsonObject = {},
  given: Partial<UpstreamRequest> = {},
): Promise<JsonObject> =>
  upstream.request(caller, toRequest('tools/call', { name, arguments: args }, given));
