// Spec §4.12: on every answer.
import type { Config } from '../core/config/config.ts';

export function securityHeaders({
  environment,
  baseUrl,
}: Config['server']): Readonly<Record<string, string>> {
  const overHttps = environment === 'production' && baseUrl.toLowerCase().startsWith('https:');
  return {
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'X-DNS-Prefetch-Control': 'off',
    'Referrer-Policy': 'strict-origin-when-cross-origin',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'cross-origin',
    ...(overHttps && {
      'Strict-Transport-Security': 'max-age=31536000; includeSubDomains; preload',
    }),
  };
}
