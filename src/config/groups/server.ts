// What the service listens on, and what it says of itself.
import { LOG_FORMATS, LOG_LEVELS } from '../../platform/log.ts';
import { anyText, baseUrl, flag, integer, integerOrAuto, listenAddress, oneOf } from '../rules.ts';
import { defineSetting, type Read, readAll, type ValuesOf } from '../setting.ts';

const port = defineSetting('PORT', integer(1, 65_535), {
  default: { value: 3000 },
  summary: 'The port to listen on.',
});

const authRequired = defineSetting('AUTH_REQUIRED', flag, {
  default: { value: true },
  summary: 'Whether callers need an access token.',
  details: '`false` lets everyone in. For local development only.',
});

export const serverSettings = {
  port,
  baseUrl: defineSetting('BASE_URL', baseUrl, {
    default: {
      text: '`http://localhost:<PORT>`',
      compute: (read) => `http://localhost:${read(port)}`,
    },
    summary: 'The public address of the service.',
    details:
      'Every URL that the gateway hands out starts with it; none is taken from a request header. A slash at the end is dropped.',
  }),
  authRequired,
  host: defineSetting('HOST', listenAddress, {
    default: {
      text: '`0.0.0.0`',
      exceptions: [['`127.0.0.1`', 'with AUTH_REQUIRED=false']],
      compute: (read) => (read(authRequired) ? '0.0.0.0' : '127.0.0.1'),
    },
    summary: 'The address to listen on.',
  }),
  environment: defineSetting('NODE_ENV', anyText, {
    default: { value: 'development' },
    summary: 'Set it to `production` in production.',
    details:
      '`production` turns off the exceptions for localhost (ALLOWED_HOSTS, ALLOWED_ORIGINS), and turns on HSTS if BASE_URL is https. The resource `config://server` shows the value.',
  }),
  logLevel: defineSetting('LOG_LEVEL', oneOf(...LOG_LEVELS), {
    default: { value: 'info' },
    summary: 'The least severe level that is logged.',
    details: '`debug` logs every request.',
  }),
  logFormat: defineSetting('LOG_FORMAT', oneOf(...LOG_FORMATS), {
    default: { value: 'json' },
    summary: 'How lines of the log are written.',
    details:
      '`json` is an object for each line, `text` is for people: behind the message, facts as `name: value`, between quotation marks where a value has spaces or marks. `postern dev` writes text to a terminal.',
  }),
  displayName: defineSetting('SERVICE_DISPLAY_NAME', anyText, {
    default: { value: 'Postern' },
    summary: 'The name of the gateway on its pages, and what the tool `service_ping` answers with.',
  }),
  metricsEnabled: defineSetting('METRICS_ENABLED', flag, {
    default: { value: false },
    summary: 'Serves metrics at `/metrics`.',
    details: 'In the OpenMetrics text format, without authentication: do not expose it.',
  }),
  shutdownDelayMs: defineSetting('SHUTDOWN_DELAY_MS', integer(0, 600_000), {
    default: { value: 0 },
    summary: 'Milliseconds to keep serving after SIGTERM.',
    details:
      'Meanwhile `/health/ready` says `not_ready`, so that a load balancer can send requests elsewhere. Calls that are under way then have as long again to end, and 10 s at least.',
  }),
  workers: defineSetting('WORKERS', integerOrAuto(1, 256), {
    default: { value: 1 },
    summary: 'How many processes serve the port, to use several CPUs.',
    details:
      'More than one needs REDIS_URL. `auto` starts one for each CPU that this machine or container may use. Bounds such as MAX_CONNECTIONS hold for each of them. `postern dev` always runs one. See [Operations](operations/store.md#several-processes-on-one-machine).',
  }),
  configFile: defineSetting('POSTERN_CONFIG', anyText, {
    summary:
      'The configuration file: which MCP servers stand behind the gateway, and who may use what.',
    details:
      'JSON (with comments), or YAML if its name ends in `.yaml` or `.yml`; `--config FILE` wins over it. A change of the file, or SIGHUP, loads it anew; a file with problems is named in the log, and the running one is kept. See [the reference](reference/servers.md#181-the-configuration-file).',
  }),
  catalogFile: defineSetting('POSTERN_CATALOG', anyText, {
    summary: 'A file whose default export is the catalogue to serve instead of the built-in one.',
    details: '`--catalog FILE` wins over it. See [A file](authors.md#a-file).',
  }),
};

/** Whether callers need a token is a member of `Config.auth`. */
const { authRequired: _, ...ownSettings } = serverSettings;

export interface ServerConfig extends ValuesOf<typeof ownSettings> {
  /** False where `baseUrl` is the default. */
  readonly isBaseUrlSet: boolean;
}

export const readServerConfig = (read: Read, isBaseUrlSet: boolean): ServerConfig => ({
  ...readAll(ownSettings, read),
  isBaseUrlSet,
});
