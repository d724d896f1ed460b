import type { LogLevel } from '../log.ts';
import type { TrustProxy } from './trust-proxy.ts';

/** Every setting, read once at start and frozen. Where a unit is not in the name it is said here. */
export interface Config {
  readonly port: number;
  readonly baseUrl: string;
  readonly authRequired: boolean;
  readonly host: string;
  readonly nodeEnv: string;
  readonly logLevel: LogLevel;
  readonly serviceDisplayName: string;
  readonly metricsEnabled: boolean;
  readonly maxBodyBytes: number;
  readonly shutdownDelayMs: number;

  readonly redisUrl: string | undefined;
  readonly dataDir: string;

  readonly sessionKeyPrefix: string;
  readonly sessionTtlSeconds: number;

  readonly oidcIssuer: string | undefined;
  readonly oidcAudience: readonly string[];
  readonly oidcJwksUrl: string | undefined;
  readonly oidcClockToleranceSeconds: number;

  readonly oauthAuthorizationUrl: string | undefined;
  readonly oauthTokenUrl: string | undefined;
  readonly oauthRevocationUrl: string | undefined;
  readonly oauthClientId: string | undefined;
  readonly oauthClientSecret: string | undefined;
  /** How the secret is sent to the provider: in the form, or as HTTP Basic (RFC 6749 §2.3.1). */
  readonly oauthClientAuth: 'post' | 'basic';
  readonly dcrClientTtlSeconds: number;

  readonly allowedOrigins: readonly string[];
  readonly allowedHosts: readonly string[];
  readonly trustProxy: TrustProxy;

  readonly rateLimitEnabled: boolean;
  readonly mcpRateLimitWindowMs: number;
  readonly mcpRateLimitMax: number;
  readonly mcpGlobalRateLimitMax: number;
  readonly dcrRateLimitWindowMs: number;
  readonly dcrRateLimitMax: number;
  readonly dcrGlobalRateLimitMax: number;
  readonly authorizeRateLimitWindowMs: number;
  readonly authorizeRateLimitMax: number;
  readonly authorizeGlobalRateLimitMax: number;
}
