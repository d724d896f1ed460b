// Protocols over HTTP, and all that they get of the server that they are spoken to.

import type { Upstream, UpstreamCaller } from '../../mcp/upstream/upstream.ts';
import type { SubscriptionMemory } from '../transport/session-records.ts';
import type { Availability, Judge } from './availability.ts';
import type { Descriptions, EraMemory } from './era.ts';
import type { HttpConnection } from './http-connection.ts';
import type { ServerListeners } from './listeners.ts';
import type { QuestionStreams } from './question-streams.ts';
import type { OpenCookies } from './session-cookies.ts';

/** The protocol that is spoken to a server, by whichever transport of HTTP. */
export interface Protocol
  extends Pick<
    Upstream,
    'era' | 'describe' | 'peekDescription' | 'request' | 'listen' | 'endSession'
  > {
  /** @throws UpstreamError while the server cannot be used. */
  probe(): Promise<void>;
  /**
   * True if the server itself refuses the token of the caller: what it is asked is no request of a client, and in no session of
   * one. @throws UpstreamError where it does not say.
   */
  isTokenRefused(caller: UpstreamCaller): Promise<boolean>;
  close(): Promise<void>;
}

/** The way to a server. */
export interface HttpLink {
  readonly connection: HttpConnection;
  readonly availability: Availability;
  readonly judge: Judge;
  readonly openCookies: OpenCookies;
}

/** All that is known of a server by now, in whichever era it is spoken to, and those who listen to it. */
export interface ServerKnowledge {
  readonly era: EraMemory;
  readonly descriptions: Descriptions;
  readonly listeners: ServerListeners;
  readonly subscriptions: SubscriptionMemory;
  readonly questionStreams: QuestionStreams;
}
