// What is known of a request between the steps of the pipeline.
import type { Endpoint } from '../core/endpoint.ts';
import type { GatewayError } from '../core/errors/gateway-error.ts';
import type { PendingReply, Reply } from '../core/message.ts';
import type { SessionLookup } from '../core/store/store.ts';
import type { LimitCheck } from '../features/limits/limiter.ts';
import type { Caller } from '../features/limits/windows.ts';
import type { RequestOrigin } from './origin-check.ts';
import type { ReceivedRequest } from './receive-request.ts';
import type { Destination } from './router.ts';

/** A request and what is found out about it on its way. Its body, once read, is not kept here. */
export interface Exchange {
  readonly received: ReceivedRequest;
  readonly destination: Destination;
  readonly origin: RequestOrigin;
  /** From when it is known. */
  endpoint: Endpoint | undefined;
  /** From when a limit has looked at the request. */
  limits: LimitCheck | undefined;
}

/** What judging a request came to. */
export type JudgedRequest = UncountedRequest | CountedRequest;

export interface UncountedRequest {
  readonly limits: undefined;
  readonly run: PendingReply;
}

export interface CountedRequest {
  readonly limits: LimitCheck;
  readonly caller: Caller;
  /** The session that is read in the step that counts the request. */
  readonly sessionId: string | undefined;
  /** Sent in place of a run, unless a limit refuses first. */
  readonly refusal: GatewayError | undefined;
  run(session: SessionLookup): Reply | Promise<Reply>;
}
