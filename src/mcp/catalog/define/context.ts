import type { UserContext } from '../../../endpoint/message.ts';
import { fail } from '../../../errors/gateway-error.ts';
import type { Context } from '../catalog.ts';

/**
 * The user of a call that makes no sense without one.
 *
 * @throws GatewayError `user_required` when the service runs without authentication.
 */
export const requireUser = ({ user }: Context): UserContext => user ?? fail('user_required');
