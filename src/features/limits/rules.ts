// Spec §8: the rules table.
import type { Config } from '../../core/config/config.ts';

export const LIMIT_GROUPS = ['mcp', 'dcr', 'authorize', 'consent', 'callback', 'token'] as const;
export type LimitGroup = (typeof LIMIT_GROUPS)[number];

export interface LimitRule {
  /** Length of the sliding window in milliseconds. */
  readonly windowMs: number;
  /** Requests per window and client IP. */
  readonly perIp: number;
  /** Requests per window of all clients. */
  readonly global: number;
}

export const limitRules = (config: Config): Readonly<Record<LimitGroup, LimitRule>> => ({
  mcp: {
    windowMs: config.mcpRateLimitWindowMs,
    perIp: config.mcpRateLimitMax,
    global: config.mcpGlobalRateLimitMax,
  },
  dcr: {
    windowMs: config.dcrRateLimitWindowMs,
    perIp: config.dcrRateLimitMax,
    global: config.dcrGlobalRateLimitMax,
  },
  authorize: {
    windowMs: config.authorizeRateLimitWindowMs,
    perIp: config.authorizeRateLimitMax,
    global: config.authorizeGlobalRateLimitMax,
  },
  consent: {
    windowMs: config.consentRateLimitWindowMs,
    perIp: config.consentRateLimitMax,
    global: config.consentGlobalRateLimitMax,
  },
  callback: {
    windowMs: config.callbackRateLimitWindowMs,
    perIp: config.callbackRateLimitMax,
    global: config.callbackGlobalRateLimitMax,
  },
  token: {
    windowMs: config.tokenRateLimitWindowMs,
    perIp: config.tokenRateLimitMax,
    global: config.tokenGlobalRateLimitMax,
  },
});
