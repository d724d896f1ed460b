// What the service listens on, and what it says of itself.
import { LOG_LEVELS, type LogLevel } from '../../log.ts';
import { anyText, baseUrl, flag, integer, listenAddress, oneOf } from '../rules.ts';
import { derived, fixed, type Read, setting } from '../setting.ts';

export interface ServerConfig {
  readonly port: number;
  readonly host: string;
  /** The public address; every URL that the service hands out derives from it. */
  readonly baseUrl: string;
  /** False where it is the default. */
  readonly isBaseUrlSet: boolean;
  /** `production` turns off the allowances for localhost. */
  readonly environment: string;
  readonly displayName: string;
  readonly logLevel: LogLevel;
  readonly metricsEnabled: boolean;
  /** For how long the service goes on after it was told to end. */
  readonly shutdownDelayMs: number;
}

const port = setting({
  variable: 'PORT',
  rule: integer(1, 65_535),
  default: fixed(3000),
  help: 'Port to listen on.',
});

const authRequired = setting({
  variable: 'AUTH_REQUIRED',
  rule: flag,
  default: fixed(true),
  help: 'false lets every caller in without a token. For local development only.',
});

export const serverSettings = {
  port,
  baseUrl: setting({
    variable: 'BASE_URL',
    rule: baseUrl,
    default: derived('http://localhost:<PORT>', (read) => `http://localhost:${read(port)}`),
    help: 'Public address of the service. Every URL handed out derives from it, never from a request header; a trailing slash is dropped.',
  }),
  authRequired,
  host: setting({
    variable: 'HOST',
    rule: listenAddress,
    default: derived('0.0.0.0 (127.0.0.1 with AUTH_REQUIRED=false)', (read) =>
      read(authRequired) ? '0.0.0.0' : '127.0.0.1',
    ),
    help: 'Address to listen on.',
  }),
  environment: setting({
    variable: 'NODE_ENV',
    rule: anyText,
    default: fixed('development'),
    help: 'Shown as environment by config://server. production turns off the allowances for localhost, and turns on HSTS where BASE_URL is https.',
  }),
  logLevel: setting({
    variable: 'LOG_LEVEL',
    rule: oneOf(...LOG_LEVELS),
    default: fixed('info'),
    help: 'error, warn, info or debug. debug logs every request.',
  }),
  displayName: setting({
    variable: 'SERVICE_DISPLAY_NAME',
    rule: anyText,
    default: fixed('Postern'),
    help: 'Name in the answer of the service_ping tool.',
  }),
  metricsEnabled: setting({
    variable: 'METRICS_ENABLED',
    rule: flag,
    default: fixed(false),
    help: 'Serves OpenMetrics text at /metrics, without authentication.',
  }),
  shutdownDelayMs: setting({
    variable: 'SHUTDOWN_DELAY_MS',
    rule: integer(0, 600_000),
    default: fixed(0),
    help: 'Milliseconds to keep serving after SIGTERM while /health/ready already says not_ready, so that a load balancer can turn away first.',
  }),
};

export const readServerConfig = (read: Read, isBaseUrlSet: boolean): ServerConfig => ({
  port: read(serverSettings.port),
  host: read(serverSettings.host),
  baseUrl: read(serverSettings.baseUrl),
  isBaseUrlSet,
  environment: read(serverSettings.environment),
  displayName: read(serverSettings.displayName),
  logLevel: read(serverSettings.logLevel),
  metricsEnabled: read(serverSettings.metricsEnabled),
  shutdownDelayMs: read(serverSettings.shutdownDelayMs),
});
