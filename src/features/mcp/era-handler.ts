// What an era of the protocol has to say: everything between a message and HTTP's answer.
import type { GatewayRequest, Reply } from '../../core/message.ts';
import type { SessionLookup } from '../../core/store/store.ts';
import type { UserContext } from '../../core/user-context.ts';
import type { Message } from './protocol/json-rpc.ts';
import type { Era } from './protocol/revisions.ts';

/** A request past Host, Origin, limits and token. */
export interface McpCall {
  readonly request: GatewayRequest;
  readonly user: UserContext | undefined;
  /** Value of the `mcp-session-id` header. */
  readonly sessionId: string | undefined;
  /** What the store said of it. */
  readonly session: SessionLookup;
  /** Counts the bytes of the body as held until what it returns is called (decisions 10). */
  hold(): () => void;
}

export interface Codec {
  readonly era: Era;
  /** Whether the era has the method, here and now. */
  knows(method: string): boolean;
  /** @throws GatewayError that says, in the era's own terms, why the message is not taken. */
  take(call: McpCall, message: Message): Promise<Reply>;
}
