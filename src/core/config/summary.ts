import type { Config } from './config.ts';

/** The configuration in a few words, for the line that says that the service runs. Nothing secret. */
export const summaryOf = ({ authRequired, oauthMode, oidcIssuer, redisUrl, dataDir }: Config) => ({
  mode: authRequired ? oauthMode : 'without authentication',
  ...(oidcIssuer !== undefined && { issuer: oidcIssuer }),
  // Of the URL the host alone: the rest may hold a password.
  store: redisUrl === undefined ? `embedded in ${dataDir}` : `Redis at ${new URL(redisUrl).host}`,
});
