// §18.6: what `auth` and `isolation` of a server mean for who asks it.
import type { UpstreamConfig } from '../../config/file/gateway-file.ts';

/** Whether it is told who calls, so that its lists may differ between users. */
export const knowsUsers = (config: UpstreamConfig): boolean =>
  config.kind === 'http' && config.auth.type !== 'none';

/** Whether it answers nobody without a user's token: the gateway itself has no credentials there. */
export const needsUser = (config: UpstreamConfig): boolean =>
  config.kind === 'http' && ['token-exchange', 'forward'].includes(config.auth.type);

/**
 * Whether each user has lists of their own, for what their client can be asked. A process of one's own is listed by
 * oneself, too: for the gateway alone there is none.
 */
export const dependsOnUser = (config: UpstreamConfig): boolean =>
  config.kind === 'http' ? knowsUsers(config) : config.isolation !== 'shared';
