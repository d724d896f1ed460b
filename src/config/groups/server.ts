// Settings of the server: its address, and how it describes itself.

import { isIPv4 } from 'node:net';
import { LOG_FORMATS, LOG_LEVELS } from '../../platform/log.ts';
import {
  anyText,
  baseUrl,
  flag,
  imageFile,
  imageUrl,
  integer,
  integerOrAuto,
  listenAddress,
  names,
  oneOf,
  systemUser,
  textWith,
} from '../rules.ts';
import { defineSetting, type Read, readAll } from '../setting.ts';

const port = defineSetting('PORT', integer(1, 65_535), {
  default: 3000,
  summary: 'The port to listen on.',
});

const authRequired = defineSetting('AUTH_REQUIRED', flag, {
  default: true,
  summary: 'Whether callers need an access token.',
  details: '`false` accepts all callers. For local development only.',
});

const metricsPort = defineSetting('METRICS_PORT', integer(1, 65_535), {
  summary: 'A port for `/metrics` alone, on the address HOST.',
  details:
    'PORT then answers 404 for `/metrics`: it need not be blocked in the proxy in front. Let only your monitoring reach this port.',
});

export const serverSettings = {
  port,
  baseUrl: defineSetting('BASE_URL', baseUrl, {
    computed: {
      text: '`http://localhost:<PORT>`',
      compute: (read) => `http://localhost:${read(port)}`,
    },
    summary: 'The public address of the service.',
    details:
      'All URLs in the gateway’s responses start with it; none is based on a request header. A trailing slash is dropped.',
  }),
  authRequired,
  host: defineSetting('HOST', listenAddress, {
    computed: {
      text: '`0.0.0.0`',
      exceptions: [['`127.0.0.1`', 'with AUTH_REQUIRED=false']],
      compute: (read) => (read(authRequired) ? '0.0.0.0' : '127.0.0.1'),
    },
    summary: 'The address to listen on.',
  }),
  environment: defineSetting('NODE_ENV', anyText, {
    default: 'development',
    summary: 'Set it to `production` in production.',
    details:
      '`production` turns off the exceptions for localhost (ALLOWED_HOSTS, ALLOWED_ORIGINS), and turns on HSTS if BASE_URL is https. The resource `config://server` shows the value.',
  }),
  logLevel: defineSetting('LOG_LEVEL', oneOf(...LOG_LEVELS), {
    default: 'info',
    summary: 'The least severe level that is logged.',
    details: '`debug` logs every request.',
  }),
  logFormat: defineSetting('LOG_FORMAT', oneOf(...LOG_FORMATS), {
    default: 'json',
    summary: 'The format of log lines.',
    details:
      '`json` writes one object per line, `text` is for people: the message is followed by `name: value` pairs, quoted if a value has spaces or quotation marks. `postern dev` writes text.',
  }),
  displayName: defineSetting('SERVICE_DISPLAY_NAME', anyText, {
    default: 'Postern',
    summary: 'The name of the gateway on its pages, and in the result of the tool `service_ping`.',
  }),
  metricsEnabled: defineSetting('METRICS_ENABLED', flag, {
    computed: {
      text: '`false`',
      exceptions: [['`true`', 'with METRICS_PORT']],
      compute: (read) => read(metricsPort) !== undefined,
    },
    summary: 'Serve metrics at `/metrics`.',
    details:
      'In the OpenMetrics text format, without authentication: do not expose it. With METRICS_PORT it is not at the public address.',
  }),
  metricsPort,
  shutdownDelayMs: defineSetting('SHUTDOWN_DELAY_MS', integer(0, 600_000), {
    default: 0,
    summary: 'Milliseconds to keep serving after SIGTERM.',
    details:
      'During this time `/health/ready` reports `not_ready`, so that a load balancer can send requests elsewhere. In-flight requests then have the same time again to finish, but at least 10 s.',
  }),
  workers: defineSetting('WORKERS', integerOrAuto(1, 256), {
    default: 1,
    summary: 'The number of processes that serve the port, to use several CPUs.',
    details:
      'More than one needs REDIS_URL. `auto` starts one for each CPU that is available to this machine or container. Limits such as MAX_CONNECTIONS apply to each of them. `postern dev` always runs one. See [Operations](operations/store.md#several-processes-on-one-machine).',
  }),
  configFile: defineSetting('POSTERN_CONFIG', anyText, {
    summary:
      'The configuration file, with the MCP servers behind the gateway, and the rules about who may use them.',
    details:
      'JSON (with comments), or YAML if its name ends in `.yaml` or `.yml`; `--config FILE` overrides it. The file is reloaded when it changes, or on SIGHUP; if it has problems, the log lists them, and the running configuration is kept. See [the reference](reference/servers.md#181-the-configuration-file).',
  }),
  catalogFile: defineSetting('POSTERN_CATALOG', anyText, {
    summary:
      'A file whose default export is the catalogue that is served instead of the built-in one.',
    details: '`--catalog FILE` overrides it. See [A file](authors.md#a-file).',
  }),
};

/** A required token is a member of `Config.auth`. */
const { authRequired: _, ...ownSettings } = serverSettings;

export const readServerConfig = (read: Read, isBaseUrlSet: boolean) => ({
  ...readAll(ownSettings, read),
  /** False if `baseUrl` is the default. */
  isBaseUrlSet,
});

// Information about this gateway that its pages show.

export const siteSettings = {
  logoUrl: defineSetting('SERVICE_LOGO_URL', imageUrl, {
    summary: 'The address of the logo on the front page.',
    details:
      'Browsers load it from there, so its host learns who visits; SERVICE_LOGO_FILE avoids that. Square images look best.',
  }),
  logoFile: defineSetting('SERVICE_LOGO_FILE', imageFile, {
    summary: 'The file of the logo on the front page.',
    details:
      'An SVG, PNG, JPEG or WebP image of at most 1 MiB. It is read at startup, and served at `/logo`.',
  }),
  showsTools: defineSetting('SITE_SHOWS_TOOLS', flag, {
    default: false,
    summary: 'Whether the pages list the tools for users who have not logged in.',
    details:
      '`true` shows their names and descriptions to everyone who can reach the gateway, if the [rules](rules.md) allow them for everyone.',
  }),
};

/** `file` is a path; the gateway serves the image. */
export type LogoConfig = { readonly url: string } | { readonly file: string };

export function readSiteConfig(read: Read) {
  const { logoUrl: url, logoFile: file, showsTools } = readAll(siteSettings, read);
  const ofFile = file === undefined ? undefined : { file };
  const logo: LogoConfig | undefined = url === undefined ? ofFile : { url };
  return { logo, showsTools };
}

// §32: how clients discover this gateway, and its name in catalogues and registries.

/** Server cards and `server.json` allow 200 characters, and names for `/mcp/<name>` end in a name of up to 32. */
const MAX_NAME = 160;

const reverseDnsName = textWith(
  (text) => text.length <= MAX_NAME && /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/.test(text),
  `a domain in reverse order, a slash and a name, such as com.example/tools, of at most ${MAX_NAME} characters`,
);

/** Maximum length in both schemas, in characters. */
const MAX_DESCRIPTION = 100;

const shortText = textWith(
  (text) => text.trim() !== '' && text.length <= MAX_DESCRIPTION && !/\p{C}/u.test(text),
  `one line of at most ${MAX_DESCRIPTION} characters`,
);

export const serverCardSettings = {
  isServed: defineSetting('SERVER_CARD', flag, {
    default: false,
    summary: 'Serve a server card, which clients can use to find the gateway before they connect.',
    details:
      'It is at `/mcp/server-card`, and a catalogue that lists it is at `/.well-known/mcp/catalog.json`; the card of a server or view is at `/mcp/<name>/server-card`. All of them are public. They name no tools. See [the reference](reference/server-card.md#32-server-card-and-serverjson).',
  }),
  name: defineSetting('SERVER_CARD_NAME', reverseDnsName, {
    computed: {
      text: 'the host of BASE_URL in reverse order, and `/postern`',
      compute: (read) => deriveName(read(serverSettings.baseUrl)),
    },
    summary: 'The name of the gateway in server cards, and in `server.json`.',
    details:
      'For example `com.example/tools`. A registry accepts only names that begin with a domain that you have proved to be yours.',
  }),
  description: defineSetting('SERVER_CARD_DESCRIPTION', shortText, {
    default: 'MCP servers and tools at one address, behind one login.',
    summary: 'The description of the gateway in server cards and in `server.json`.',
  }),
};

/** `https://mcp.example.com` becomes `com.example.mcp/postern`. An IP address cannot be reversed. */
function deriveName(url: string) {
  const { hostname } = new URL(url);
  // `isIP` is avoided: for a host name it compiles the IPv6 pattern, which adds 5 ms to the startup time.
  const isAddress = hostname.startsWith('[') || isIPv4(hostname);
  const name = hostname.replace(/^\[|\]$/g, '');
  const labels = isAddress ? [name] : name.split('.').filter(Boolean).reverse();
  const namespace = labels.join('.').replace(/[^a-zA-Z0-9.-]/g, '-');
  return `${namespace}/postern`.slice(-MAX_NAME);
}

// Defaults for the servers behind the gateway, which the configuration file may override.

export const upstreamSettings = {
  maxBytes: defineSetting('MAX_UPSTREAM_BYTES', integer(1024, 268_435_456), {
    default: 8_388_608,
    summary: 'Maximum number of bytes in one response from an MCP server behind the gateway.',
    details: 'For a stream, per event. A call with a longer response ends in an error result.',
  }),
  listWaitMs: defineSetting('LIST_WAIT_MS', integer(0, 60_000), {
    default: 5_000,
    summary: 'Milliseconds for which the first list waits for a server that has not answered yet.',
    details:
      'After that, the list is sent without that server, and clients get `list_changed` once it has answered. Clients that cannot receive it wait up to 8 s ([how](reference/server-connections.md#184-when-a-server-fails)).',
  }),
  runProgramsAs: defineSetting('RUN_PROGRAMS_AS', systemUser, {
    summary: 'The system user that runs MCP servers that are programs.',
    details:
      'For example `postern-programs` or `1001:1001`. A server’s `runAs` overrides it. If unset, they run as the gateway’s user, and can read its secrets. Linux only; the gateway has to be root, or to have the capabilities SETUID, SETGID and KILL ([how](deploy.md#programs-as-another-user)).',
  }),
};

// Settings of the operators' page.

const groupNames = names('groups, as the provider names them');
const clientIds = names('client IDs, as the configuration file or the provider knows them');

export const adminSettings = {
  groups: defineSetting('ADMIN_GROUPS', groupNames, {
    default: [],
    summary: "The groups whose members may use the operators' page, `/admin`.",
    details:
      'As the provider names them, character by character: in the claim of OIDC_GROUPS_CLAIM, or with tokens from the provider in the `groups` claim of the access token. If a name has a comma, write a JSON array: `["CN=ops,OU=groups"]`. If unset, there is no such page, except in `postern dev`, whose users are all operators. See [Operations](operations/operators.md#the-operators-page).',
  }),
  approvalWaitSeconds: defineSetting('APPROVAL_WAIT_SECONDS', integer(1, 600), {
    default: 40,
    summary: "Seconds for which a call waits for an operator's approval.",
    details:
      'After that, the model is asked to call again, and that call waits in turn. Many clients give up after 60 s without a result. See [Ask before a call runs](asking-first.md).',
  }),
  listsCalls: defineSetting('ADMIN_CALLS', flag, {
    default: true,
    summary: 'Whether operators see the last 10,000 calls.',
    details:
      'Of the last 24 hours: user, client, server, name, outcome, duration and size of the response, never arguments or results. Needs ADMIN_GROUPS. See [Operations](operations/operators.md).',
  }),
  clients: defineSetting('ADMIN_CLIENTS', clientIds, {
    default: [],
    summary: "Other clients whose tokens the operators' API accepts, such as your scripts.",
    details:
      'By ID: [clients that log in as themselves](machine-clients.md), or clients at the provider, identified by `azp` or `client_id` of their access tokens. If unset, only tokens that were issued to the page `/admin` are accepted. Keep these tokens to these clients: the holder of one can do everything that its operator can.',
  }),
};
