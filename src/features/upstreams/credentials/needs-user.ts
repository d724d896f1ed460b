// §18.6: what `auth` of a server means for asking it without a user.
import type { UpstreamConfig } from '../../../core/gateway-file/gateway-file.ts';

/** Whether it is told who calls, so that its lists may differ between users. */
export const knowsUsers = (config: UpstreamConfig): boolean =>
  config.kind === 'http' && config.auth.type !== 'none';

/** Whether it answers nobody without a user's token: the gateway itself has no credentials there. */
export const needsUser = (config: UpstreamConfig): boolean =>
  config.kind === 'http' && ['token-exchange', 'forward'].includes(config.auth.type);
