// One call of POST /mcp: what all of its steps need, made once.

import type { ProtectedCall } from '../../endpoint/endpoint.ts';
import { type GatewayRequest, getHeader } from '../../endpoint/message.ts';
import type { UserContext } from '../../endpoint/user-context.ts';
import {
  type Cancellation,
  type CancelSignal,
  createCancellation,
  toAbortSignal,
} from '../../platform/cancellation.ts';
import type { JsonRpcMessage } from '../../protocol/json-rpc.ts';
import type { SessionAccess, SessionLookup } from '../../store/store.ts';
import type { ServedCatalog } from '../catalog/served-catalog.ts';
import {
  acceptsEventStream,
  createResponseStream,
  type ResponseStream,
} from '../streaming/response-stream.ts';
import type { CallRecord } from './call-record.ts';
import type { McpResponse } from './outcome.ts';

/** Has neither body nor message: a call that waits keeps this, and nothing of what was sent. */
export interface Call {
  /** What is known of it, for whoever observes calls. */
  readonly record: CallRecord;
  /** What its path serves. */
  readonly catalog: ServedCatalog;
  readonly request: GatewayRequest;
  readonly user: UserContext | undefined;
  /** Value of the header `mcp-session-id`. */
  readonly sessionId: string | undefined;
  /** What the store said of that session. */
  readonly session: SessionLookup;
  /** The way to the client until the call is answered. */
  readonly stream: ResponseStream;
  /** Counts the bytes of the body as held until what it returns is called. */
  holdBody(): () => void;
  /** Aborted when the caller hangs up, or by `abort`. Made on first use: most calls never ask for it. */
  signal(): CancelSignal;
  /** The same for tools. */
  abortSignal(): AbortSignal;
  /** Tells the tool that nobody waits for its result. */
  abort(): void;
}

/** An era of the protocol: answers its messages. */
export interface EraHandler {
  /** What a message wants of the session that its request names; undefined where the era has none. */
  accessSession(request: GatewayRequest, user: UserContext | undefined): SessionAccess | undefined;
  /** @throws GatewayError that says, in the era's own terms, why the message is refused. */
  handle(call: Call, message: JsonRpcMessage): Promise<McpResponse>;
}

export function createCall(
  record: CallRecord,
  catalog: ServedCatalog,
  { request, user, body }: ProtectedCall,
  session: SessionLookup,
): Call {
  let cancellation: Cancellation | undefined;
  let abortSignal: AbortSignal | undefined;
  let isAborted = false;

  function startCancellation(): Cancellation {
    const created = createCancellation();
    const hangUp = request.signal();
    if (isAborted || hangUp.aborted) created.abort();
    else hangUp.addEventListener('abort', created.abort);
    return created;
  }

  function getSignal(): CancelSignal {
    cancellation ??= startCancellation();
    return cancellation.signal;
  }

  return {
    record,
    catalog,
    request,
    user,
    sessionId: readSessionHeader(request),
    session,
    stream: createResponseStream(acceptsEventStream(request), record.id ?? null),
    holdBody: body.hold,
    signal: getSignal,
    abortSignal() {
      abortSignal ??= toAbortSignal(getSignal());
      return abortSignal;
    },
    abort() {
      isAborted = true;
      cancellation?.abort();
    },
  };
}

export const readSessionHeader = (request: GatewayRequest): string | undefined =>
  getHeader(request, 'mcp-session-id');
