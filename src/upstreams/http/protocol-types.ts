import type { Upstream } from '../upstream.ts';
import type { Availability } from './availability.ts';
import type { HttpConnection } from './http-connection.ts';
import type { HttpUpstreamDeps } from './http-upstream-deps.ts';
import type { Judge } from './judge.ts';

/** What is said to a server, by whichever transport of HTTP. */
export interface Protocol
  extends Pick<
    Upstream,
    'era' | 'describe' | 'peekDescription' | 'request' | 'listen' | 'endSession'
  > {
  /** @throws UpstreamError while the server cannot be used. */
  probe(): Promise<void>;
  close(): Promise<void>;
}

export interface ProtocolDeps extends Omit<HttpUpstreamDeps, 'getHeaders' | 'maxBytes'> {
  readonly connection: HttpConnection;
  readonly availability: Availability;
  readonly judge: Judge;
}
