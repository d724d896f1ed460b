import type { LogLevel } from '../log.ts';
import type { ProviderSettings } from './provider-profiles.ts';
import type { TrustProxy } from './trust-proxy.ts';

/** How people log in: the mode, consent, and which clients are let in. */
export interface OAuthSettings {
  /** `broker`: an issuer of its own with a callback of its own; `proxy`: Spec §4.6, §4.7. */
  readonly oauthMode: 'proxy' | 'broker';
  readonly oauthConsent: 'page' | 'off';
  readonly oauthConsentTtlSeconds: number;
  readonly oauthPopups: boolean;
  /** What clients may ask for in broker mode; others are left out. `*` for any. */
  readonly oauthAllowedScopes: readonly string[];
  /** The first seals, all open. Never empty when given. */
  readonly oauthStateSecrets: readonly string[] | undefined;
  readonly oauthRefreshTtlSeconds: number;
  readonly oauthMetadataIssuer: 'self' | 'upstream';
  /** Hosts of client ID metadata documents; `*` for any. */
  readonly cimdAllowedHosts: readonly string[];
  readonly oauthLoopbackAnyPort: boolean;
  /** Private-use schemes of redirect URIs (RFC 8252 §7.1), without the colon. */
  readonly oauthRedirectSchemes: readonly string[];
  readonly dcrRenew: boolean;
  readonly dcrAccessToken: string | undefined;
}

/** The way out of the network, with the names that other programs have for it, too. */
export interface ProxySettings {
  /** For http URLs. May hold a password, as the next one. */
  readonly httpProxy: string | undefined;
  readonly httpsProxy: string | undefined;
  /** Hosts that are reached directly, as they were written. */
  readonly noProxy: readonly string[];
}

/** Every setting, read once at start and frozen. Where a unit is not in the name it is said here. */
export interface Config extends OAuthSettings, ProviderSettings, ProxySettings {
  readonly port: number;
  readonly baseUrl: string;
  /** False where it is the default. */
  readonly baseUrlIsSet: boolean;
  readonly authRequired: boolean;
  readonly host: string;
  readonly nodeEnv: string;
  readonly logLevel: LogLevel;
  readonly serviceDisplayName: string;
  readonly metricsEnabled: boolean;
  readonly maxBodyBytes: number;
  /** JSON values in one request body. */
  readonly maxBodyValues: number;
  /** Open connections of the process; 0 for any number. */
  readonly maxConnections: number;
  readonly shutdownDelayMs: number;

  readonly redisUrl: string | undefined;
  readonly dataDir: string;

  readonly sessionKeyPrefix: string;
  readonly sessionTtlSeconds: number;
  /** Sessions that one user may have; 0 for any number. */
  readonly userSessionsMax: number;
  /** GET /mcp and subscriptions: streams for what the service has to say by itself. */
  readonly mcpStreams: boolean;

  readonly oidcIssuer: string | undefined;
  readonly oidcAudience: readonly string[];
  readonly oidcJwksUrl: string | undefined;
  readonly oidcClockToleranceSeconds: number;
  /** Bytes of a bearer token. */
  readonly maxTokenBytes: number;

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
  /** Calls of one user per window of the `mcp` group; undefined for any number. */
  readonly mcpUserRateLimitMax: number | undefined;
  /** Calls of one user that run for over a second; 0 for any number. */
  readonly userCallsMax: number;
  readonly dcrRateLimitWindowMs: number;
  readonly dcrRateLimitMax: number;
  readonly dcrGlobalRateLimitMax: number;
  readonly authorizeRateLimitWindowMs: number;
  readonly authorizeRateLimitMax: number;
  readonly authorizeGlobalRateLimitMax: number;
  readonly consentRateLimitWindowMs: number;
  readonly consentRateLimitMax: number;
  readonly consentGlobalRateLimitMax: number;
  readonly callbackRateLimitWindowMs: number;
  readonly callbackRateLimitMax: number;
  readonly callbackGlobalRateLimitMax: number;
  readonly tokenRateLimitWindowMs: number;
  readonly tokenRateLimitMax: number;
  readonly tokenGlobalRateLimitMax: number;
}

/** The members that are settings of their own. */
export type SettingName = Exclude<keyof Config, 'baseUrlIsSet'>;
