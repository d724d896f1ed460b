// §4.12: on every reply.
import type { Config } from '../core/config/config.ts';
import type { ReplyHeaders } from '../core/message.ts';

export function createSecurityHeaders({ environment, baseUrl }: Config['server']): ReplyHeaders {
  const isHttps = environment === 'production' && baseUrl.toLowerCase().startsWith('https:');
  return {
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'X-DNS-Prefetch-Control': 'off',
    'Referrer-Policy': 'strict-origin-when-cross-origin',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'cross-origin',
    ...(isHttps && {
      'Strict-Transport-Security': 'max-age=31536000; includeSubDomains; preload',
    }),
  };
}
