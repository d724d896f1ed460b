import { fail } from '../../../../core/errors/gateway-error.ts';
import type { UserContext } from '../../../../core/user-context.ts';
import type { Context } from '../catalog.ts';

/**
 * The user of a call that makes no sense without one.
 *
 * @throws GatewayError `user_required` when the service runs without authentication.
 */
export const requireUser = ({ user }: Context): UserContext => user ?? fail('user_required');
