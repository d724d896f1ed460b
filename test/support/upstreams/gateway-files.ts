// Configuration files as the gateway gets them once they are parsed.
import {
  type GatewayFile,
  type HttpUpstreamConfig,
  NO_GATEWAY_FILE,
} from '../../../src/core/gateway-file/gateway-file.ts';

const ALL_TOOLS = { include: ['*'], exclude: [], describe: {} } as const;

/** A server over HTTP, with what the test wants to be otherwise. */
export const httpServer = (
  name: string,
  url: string,
  members: Partial<HttpUpstreamConfig> = {},
): HttpUpstreamConfig => ({
  kind: 'http',
  name,
  prefix: name,
  url,
  transport: 'streamable-http',
  headers: {},
  ca: undefined,
  auth: { type: 'none' },
  timeoutMs: 60_000,
  required: false,
  tools: ALL_TOOLS,
  ...members,
});

export const gatewayFile = (members: Partial<GatewayFile>): GatewayFile => ({
  ...NO_GATEWAY_FILE,
  ...members,
});
