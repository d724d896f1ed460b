// What is known of a request between the steps of the pipeline.

import type { GrantLookup, SessionLookup } from '../../store/store.ts';
import type { Endpoint, JudgedCall } from '../endpoint/endpoint.ts';
import type { PendingReply, Reply } from '../endpoint/message.ts';
import type { LimitCheck } from '../limits/limiter.ts';
import type { CountedCaller } from '../limits/windows.ts';
import type { RequestOrigin } from './host-and-origin.ts';
import type { ReceivedRequest } from './receive-request.ts';
import type { RequestDestination } from './router.ts';
import type { MemoryOwner } from './transfer-memory.ts';

/** A request and what is found out about it on its way. Its body, once read, is not kept here. */
export interface Exchange {
  readonly received: ReceivedRequest;
  readonly destination: RequestDestination;
  readonly origin: RequestOrigin;
  /** From when it is known. */
  endpoint: Endpoint | undefined;
  /** From when a limit has looked at the request. */
  limits: LimitCheck | undefined;
  /** Whose memory the reply takes; once it was judged. */
  owner: MemoryOwner;
}

/** What judging a request came to. */
export type JudgedRequest = UncountedRequest | CountedRequest;

export interface UncountedRequest {
  readonly limits: undefined;
  readonly run: PendingReply;
}

export interface CountedRequest extends Pick<JudgedCall, 'access'> {
  readonly limits: LimitCheck;
  readonly caller: CountedCaller;
  /** Of the caller's grant, where the gateway's own token let it in. */
  readonly grantKey: string | undefined;
  run(session: SessionLookup, grant: GrantLookup): Reply | Promise<Reply>;
}
