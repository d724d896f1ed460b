import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { OutboundConfig } from '../../platform/outbound/proxy-choice.ts';
import type { Seal } from '../../store/seal/seal.ts';
import type { Bus, KeyValue } from '../../store/store.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import type { GetHeaders, NoteRefusal } from '../credentials/credential-type.ts';
import type { AnswerMemory } from '../transport/answer-memory.ts';
import type { HeldStreams } from '../transport/held-streams.ts';
import type { MessagePace } from '../transport/message-pace.ts';
import type { Upstream, UpstreamCaller } from '../upstream.ts';
import type { Availability, Judge } from './availability.ts';
import type { HttpConnection } from './http-connection.ts';
import type { OpenCookies } from './session-cookies.ts';

/** What is said to a server, by whichever transport of HTTP. */
export interface Protocol
  extends Pick<
    Upstream,
    'era' | 'describe' | 'peekDescription' | 'request' | 'listen' | 'endSession'
  > {
  /** @throws UpstreamError while the server cannot be used. */
  probe(): Promise<void>;
  /**
   * Whether the server itself refuses the token of the caller: what it is asked is no request of a client, and in no session of
   * one. @throws UpstreamError where it does not say.
   */
  isTokenRefused(caller: UpstreamCaller): Promise<boolean>;
  close(): Promise<void>;
}

export interface ProtocolDeps
  extends Omit<HttpUpstreamDeps, 'getHeaders' | 'noteRefusal' | 'maxBytes'> {
  readonly connection: HttpConnection;
  readonly availability: Availability;
  readonly judge: Judge;
  readonly openCookies: OpenCookies;
}

/** What a server that is reached by HTTP needs of the gateway. */
export interface HttpUpstreamDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly store: KeyValue & Bus;
  readonly getSeal: () => Promise<Seal>;
  /** What tells the server who calls (§18.6), beside the headers of the configuration. */
  readonly getHeaders: GetHeaders;
  /** Undefined where what the server says of a token changes nothing. */
  readonly noteRefusal?: NoteRefusal | undefined;
  /** Bytes of an answer, or of an event of a stream. */
  readonly maxBytes: number;
  /** All three are the same for all servers. */
  readonly answerMemory: AnswerMemory;
  readonly messagePace: MessagePace;
  readonly heldStreams: HeldStreams;
  /** Undefined where no other process shares the store. */
  readonly metrics?: Pick<Metrics, 'recordDroppedReplicaMessage'> | undefined;
  readonly outbound: OutboundConfig;
  /** Whether a client's session goes on, whichever replica it was ended at; never rejects. */
  isSessionActive(sessionId: string): Promise<boolean>;
  /** `MCP_SESSION_KEY_PREFIX`. */
  readonly sessionKeyPrefix: string;
  /** `MCP_SESSION_TTL_SECONDS`. */
  readonly sessionTtlSeconds: number;
}
