// Spec §4.12, §7.4, decisions 1: which origins may call.
import type { Config } from '../core/config/config.ts';

const LOCAL = /^http:\/\/(localhost|127\.0\.0\.1)(:\d{1,5})?$/;

/** Whether the value of an `Origin` header is allowed. */
export function createOriginCheck({
  server,
  http,
}: Pick<Config, 'server' | 'http'>): (origin: string) => boolean {
  const allowed = new Set([new URL(server.baseUrl).origin, ...http.allowedOrigins]);
  const localToo = server.environment !== 'production';

  return function isAllowed(origin) {
    const written = origin.toLowerCase();
    return allowed.has(written) || (localToo && LOCAL.test(written));
  };
}
