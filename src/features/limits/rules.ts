// Spec §8: the rules table.
import type { Config } from '../../core/config/config.ts';
import type { LimitGroup } from '../../core/endpoint.ts';

export interface LimitRule {
  readonly group: LimitGroup;
  /** Length of the sliding window in milliseconds. */
  readonly windowMs: number;
  /** Requests per window of an address, of a user (undefined: not counted), of all callers. */
  readonly max: {
    readonly ip: number;
    readonly user?: number | undefined;
    readonly global: number;
  };
  /** What the variables that set them begin with, for whoever has to raise one. */
  readonly prefix: string;
}

export const limitRules = (config: Config): Readonly<Record<LimitGroup, LimitRule>> => ({
  mcp: {
    group: 'mcp',
    prefix: 'MCP',
    windowMs: config.mcpRateLimitWindowMs,
    max: {
      ip: config.mcpRateLimitMax,
      user: config.mcpUserRateLimitMax,
      global: config.mcpGlobalRateLimitMax,
    },
  },
  dcr: {
    group: 'dcr',
    prefix: 'DCR',
    windowMs: config.dcrRateLimitWindowMs,
    max: { ip: config.dcrRateLimitMax, global: config.dcrGlobalRateLimitMax },
  },
  authorize: {
    group: 'authorize',
    prefix: 'OAUTH_AUTHORIZE',
    windowMs: config.authorizeRateLimitWindowMs,
    max: {
      ip: config.authorizeRateLimitMax,

      global: config.authorizeGlobalRateLimitMax,
    },
  },
  consent: {
    group: 'consent',
    prefix: 'OAUTH_CONSENT',
    windowMs: config.consentRateLimitWindowMs,
    max: {
      ip: config.consentRateLimitMax,

      global: config.consentGlobalRateLimitMax,
    },
  },
  callback: {
    group: 'callback',
    prefix: 'OAUTH_CALLBACK',
    windowMs: config.callbackRateLimitWindowMs,
    max: {
      ip: config.callbackRateLimitMax,

      global: config.callbackGlobalRateLimitMax,
    },
  },
  token: {
    group: 'token',
    prefix: 'OAUTH_TOKEN',
    windowMs: config.tokenRateLimitWindowMs,
    max: { ip: config.tokenRateLimitMax, global: config.tokenGlobalRateLimitMax },
  },
});
