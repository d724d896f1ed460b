import type { GatewayRequest, RequestBody } from '../core/message.ts';
import type { BodyRules } from './body.ts';
import type { BodyOwner } from './body-budgets.ts';

/** A request with what only the transport knows. */
export interface Incoming {
  readonly request: GatewayRequest;
  /** Authority of a target in absolute form. */
  readonly authority: string | undefined;
  /** Reads the body; called at most once. `maxBytes` where it is less than usual. */
  readBody(
    accepts: BodyRules['accepts'],
    owner: BodyOwner,
    maxBytes?: number,
  ): Promise<RequestBody>;
  /** Whether the body was read to its end. */
  isRead(): boolean;
  /** Milliseconds since the head arrived. */
  age(): number;
}
