// What is passed on: one request of a client, to one server.

import type { Context, RawResult } from '../../mcp/catalog/catalog.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Upstream, UpstreamCaller } from '../upstream.ts';

/**
 * Passes a call on to its server, and what both ask and tell each other meanwhile.
 *
 * @throws GatewayError; and in the stateless era what ends a call that asks (`StatelessRelay`), which must pass.
 */
export type RelayCall = (
  upstream: Upstream,
  caller: UpstreamCaller,
  request: RelayedRequest,
  context: Context,
) => Promise<RawResult>;

export interface RelayedRequest {
  readonly method: 'tools/call' | 'prompts/get' | 'resources/read' | 'completion/complete';
  /** With the server's own names and URIs; `_meta` has what the client wrote there for the server. */
  readonly params: JsonObject;
  /** The server's own name or URI that the request is about. */
  readonly name?: string;
  /** Arguments that go into headers, too, as header name and value. */
  readonly mirrored?: Readonly<Record<string, string>>;
}

export interface RelayedCall {
  readonly upstream: Upstream;
  readonly caller: UpstreamCaller;
  readonly request: RelayedRequest;
}
