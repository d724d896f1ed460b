// The address on which the service listens, and its description of itself.

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
  type Rule,
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
  details: '`false` lets everyone in. For local development only.',
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
      'Every URL that the gateway hands out starts with it; none is taken from a request header. A slash at the end is dropped.',
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
    summary: 'How lines of the log are written.',
    details:
      '`json` is an object for each line, `text` is for people: behind the message, facts as `name: value`, between quotation marks where a value has spaces or marks. `postern dev` writes text to a terminal.',
  }),
  displayName: defineSetting('SERVICE_DISPLAY_NAME', anyText, {
    default: 'Postern',
    summary: 'The name of the gateway on its pages, and what the tool `service_ping` answers with.',
  }),
  metricsEnabled: defineSetting('METRICS_ENABLED', flag, {
    default: false,
    summary: 'Serves metrics at `/metrics`.',
    details: 'In the OpenMetrics text format, without authentication: do not expose it.',
  }),
  shutdownDelayMs: defineSetting('SHUTDOWN_DELAY_MS', integer(0, 600_000), {
    default: 0,
    summary: 'Milliseconds to keep serving after SIGTERM.',
    details:
      'Meanwhile `/health/ready` says `not_ready`, so that a load balancer can send requests elsewhere. Calls that are under way then have as long again to end, and 10 s at least.',
  }),
  workers: defineSetting('WORKERS', integerOrAuto(1, 256), {
    default: 1,
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

/** The need of a token is a member of `Config.auth`. */
const { authRequired: _, ...ownSettings } = serverSettings;

export const readServerConfig = (read: Read, isBaseUrlSet: boolean) => ({
  ...readAll(ownSettings, read),
  /** False where `baseUrl` is the default. */
  isBaseUrlSet,
});

// The facts about this gateway that its pages show.

export const siteSettings = {
  logoUrl: defineSetting('SERVICE_LOGO_URL', imageUrl, {
    summary: 'The address of the logo on the front page.',
    details:
      'Browsers load it from there, so its host learns who visits; SERVICE_LOGO_FILE avoids that. Square images look best.',
  }),
  logoFile: defineSetting('SERVICE_LOGO_FILE', imageFile, {
    summary: 'The file of the logo on the front page.',
    details:
      'An SVG, PNG, JPEG or WebP image of at most 1 MiB. It is read at start, and served at `/logo`.',
  }),
  showsTools: defineSetting('SITE_SHOWS_TOOLS', flag, {
    default: false,
    summary: 'Whether the pages list the tools before anybody has signed in.',
    details:
      '`true` shows their names and descriptions to everyone who can reach the gateway, as far as the [rules](rules.md) hold for everybody.',
  }),
};

/** `file` is a path; its image is served by the gateway. */
export type LogoConfig = { readonly url: string } | { readonly file: string };

export function readSiteConfig(read: Read) {
  const { logoUrl: url, logoFile: file, showsTools } = readAll(siteSettings, read);
  const ofFile = file === undefined ? undefined : { file };
  const logo: LogoConfig | undefined = url === undefined ? ofFile : { url };
  return { logo, showsTools };
}

// §32: how clients find this gateway, and what it is called in catalogues and registries.

/** The schemas of server cards and of `server.json` take 200 characters; those of `/mcp/<name>` end in a name of up to 32. */
const MAX_NAME = 160;

const reverseDnsName = textWith(
  (text) => text.length <= MAX_NAME && /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/.test(text),
  `a domain in reverse order, a slash and a name, such as com.example/tools, of at most ${MAX_NAME} characters`,
);

/** Characters, in both schemas. */
const MAX_DESCRIPTION = 100;

const shortText: Rule<string> = {
  parse: (text) =>
    text.trim() !== '' && text.length <= MAX_DESCRIPTION && !/\p{C}/u.test(text) ? text : undefined,
  allowed: `one line of at most ${MAX_DESCRIPTION} characters`,
};

export const serverCardSettings = {
  isServed: defineSetting('SERVER_CARD', flag, {
    default: false,
    summary: 'Serves a server card, by which clients find the gateway before they connect.',
    details:
      'At `/mcp/server-card`, and a catalogue with it at `/.well-known/mcp/catalog.json`; the card of a server or view is at `/mcp/<name>/server-card`. Everybody can read them. They name no tools. See [the reference](reference/server-card.md#32-server-card-and-serverjson).',
  }),
  name: defineSetting('SERVER_CARD_NAME', reverseDnsName, {
    computed: {
      text: 'the host of BASE_URL in reverse order, and `/postern`',
      compute: (read) => deriveName(read(serverSettings.baseUrl)),
    },
    summary: 'The name of the gateway in server cards, and in `server.json`.',
    details:
      'Such as `com.example/tools`. A registry takes only names that begin with a domain which you show to be yours.',
  }),
  description: defineSetting('SERVER_CARD_DESCRIPTION', shortText, {
    default: 'MCP servers and tools at one address, behind one login.',
    summary: 'What server cards and `server.json` say of the gateway.',
  }),
};

/** `https://mcp.example.com` is `com.example.mcp/postern`. An IP address has no order to reverse. */
function deriveName(url: string): string {
  const { hostname } = new URL(url);
  // Not by `isIP`: for a name that compiles its pattern for IPv6, which takes 5 ms of a start.
  const isAddress = hostname.startsWith('[') || isIPv4(hostname);
  const name = hostname.replace(/^\[|\]$/g, '');
  const labels = isAddress ? [name] : name.split('.').filter(Boolean).reverse();
  const namespace = labels.join('.').replace(/[^a-zA-Z0-9.-]/g, '-');
  return `${namespace}/postern`.slice(-MAX_NAME);
}

// The servers behind the gateway, as far as the configuration file does not say it.

export const upstreamSettings = {
  maxBytes: defineSetting('MAX_UPSTREAM_BYTES', integer(1024, 268_435_456), {
    default: 8_388_608,
    summary: 'The most bytes of one answer of an MCP server behind the gateway.',
    details: 'Of a stream, of each event. A call whose answer is longer ends in an error result.',
  }),
  listWaitMs: defineSetting('LIST_WAIT_MS', integer(0, 60_000), {
    default: 5_000,
    summary: 'Milliseconds that a first list waits for a server that has not answered yet.',
    details:
      'Then the list goes out without that server, and clients get `list_changed` once it has answered. Clients that cannot get that wait up to 8 s ([how](reference/server-connections.md#184-when-a-server-fails)).',
  }),
  runProgramsAs: defineSetting('RUN_PROGRAMS_AS', systemUser, {
    summary: 'The user of the system that MCP servers run as that are programs.',
    details:
      'Such as `postern-programs` or `1001:1001`. `runAs` of a server wins. Without it they run as the user of the gateway, and can read its secrets. Linux only; the gateway has to be root, or to have the capabilities SETUID, SETGID and KILL ([how](deploy.md#programs-as-another-user)).',
  }),
};

// The operators' page.

const groupNames = names('groups, as the provider names them');
const clientIds = names('client IDs, as the configuration file or the provider knows them');

export const adminSettings = {
  groups: defineSetting('ADMIN_GROUPS', groupNames, {
    default: [],
    summary: "The groups whose members may use the operators' page, `/admin`.",
    details:
      'As the provider names them, character by character: in the claim of OIDC_GROUPS_CLAIM, or with tokens of the provider in the claim `groups` of the access token. Where a name has a comma, write a JSON array: `["CN=ops,OU=groups"]`. If unset, there is no such page. See [Operations](operations/operators.md#the-operators-page).',
  }),
  clients: defineSetting('ADMIN_CLIENTS', clientIds, {
    default: [],
    summary: "Other clients whose tokens the operators' API takes, such as a script of yours.",
    details:
      'By ID: [clients that sign in as themselves](machine-clients.md), or clients of the provider as `azp` or `client_id` of their access tokens names them. Without any, only tokens that the page `/admin` got are taken. Give these tokens to nothing else: whoever has one can do what its operator can.',
  }),
};
