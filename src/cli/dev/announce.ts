// Terminal output of postern dev: a banner at first, then the changes.

import type { ServerFacts } from '../../catalog/upstream-catalogs.ts';
import type { Config } from '../../config/config.ts';
import { findStoreKind } from '../../config/groups/store.ts';
import { CLIENT_SETUPS, DEFAULT_ENTRY_NAME } from '../../pages/client-setups.ts';
import { systemClock } from '../../platform/clock.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { PACKAGE_VERSION } from '../../platform/own-files.ts';
import { countNoun } from '../../platform/text.ts';
import { findTransport } from '../../servers/transport/transports.ts';
import { listSettings } from '../command-line/env-file.ts';
import { describeCommand, isInCheckout } from '../command-line/invocation.ts';
import type { EnvFile } from '../command-line/read-input.ts';
import type { ConfigFile } from '../setup/config-file.ts';

interface Announcement extends Banner {
  /** A summary: how much is served, and how many sessions were kept. */
  readonly summary: string;
  /** The changed files that were loaded; empty after the first start and after a manual reload. */
  readonly loaded: readonly string[];
}

/** `hasKeys` means that the user can press keys for details. */
export function createAnnouncer(write: (text: string) => void, hasKeys: boolean) {
  // File names and their content may come from others, so terminal control characters are escaped.
  const print = (text: string) => write(escapeInvisible(text));
  let told: Announcement | undefined;

  return {
    announce(announcement: Announcement): void {
      const { facts, summary, loaded } = announcement;
      if (told === undefined && loaded.length === 0) {
        print(hasKeys ? renderShortBanner(announcement) : renderBanner(announcement));
      } else {
        const why = loaded.length === 0 ? '' : `: ${loaded.join(', ')} changed`;
        // A previous process has printed these facts. Only .env can have changed them since then, and this process cannot tell
        // which.
        const before = told ?? (loaded.includes('.env') ? undefined : announcement);
        const known = before?.facts.map((fact) => renderFacts([fact])) ?? [];
        const changed = facts.filter(
          (fact) =>
            !(before === undefined && fact.isDetail) && !known.includes(renderFacts([fact])),
        );
        print(`Reloaded${why}. ${summary}.\n${renderFacts(changed)}`.trimEnd());
      }
      told = announcement;
    },
    note: print,
    /** Prints the hints that the short banner omits. */
    printHints() {
      if (told !== undefined) print(`\n${told.hints}`);
    },
  };
}

interface Fact {
  readonly name: string;
  /** Without lines, it is not printed. */
  readonly lines: readonly string[];
  /** Omitted from the short banner. */
  readonly isDetail?: true;
}

interface Banner {
  readonly facts: readonly Fact[];
  /** Suggested commands and client setups, which most changes do not affect. */
  readonly hints: string;
}

const HEAD = `
  Postern ${PACKAGE_VERSION} is running for development. Do not use it in production.
`;

export const renderBanner = ({ facts, hints }: Banner): string => `${HEAD}
${renderFacts(facts)}
${hints}
  LOG_LEVEL=debug logs every request. Press Ctrl+C to stop.`;

/** For a terminal with keys for the details. */
const renderShortBanner = ({ facts }: Banner) => `${HEAD}
${renderFacts(facts.filter(({ isDetail }) => !isDetail))}
  Press c to see how clients connect, Ctrl+C to stop.
`;

const renderFacts = (facts: readonly Fact[]) =>
  facts
    .flatMap(({ name, lines }) =>
      lines.map((line, index) => `  ${(index === 0 ? name : '').padEnd(9)} ${line}\n`),
    )
    .join('');

// The banner of postern dev: the services, and how clients connect.

interface BannerFacts {
  readonly login: string;
  /** Returns an access token; undefined without the development provider. */
  readonly tokenUrl: string | undefined;
  readonly configFile: Pick<ConfigFile, 'path' | 'setup'> | undefined;
  readonly envFile: EnvFile | undefined;
}

const DEFAULT_BASE_URL = 'http://localhost:3000';

/** `node` is the version of Node.js. */
export function createBanner(
  config: Config,
  facts: BannerFacts,
  node: string = process.versions.node,
): Banner {
  const { server, store, admin } = config;
  const { login, configFile, envFile } = facts;
  const { baseUrl, catalogFile } = server;
  const url = `${baseUrl}/mcp`;
  const { views = [] } = configFile?.setup.file ?? {};
  const catalog =
    configFile?.setup.file.builtIn === false
      ? 'none ("builtIn": false)'
      : (catalogFile ?? 'built in (--catalog FILE serves your own)');
  return {
    facts: [
      { name: 'MCP URL', lines: [url] },
      { name: 'Login', lines: [login] },
      { name: 'Pages', lines: [`${baseUrl}/`] },
      {
        name: 'Operators',
        // Without groups, the page says how to turn it on.
        lines: [`${baseUrl}/admin${admin.groups.length > 0 ? '' : ' (off)'}`],
      },
      { name: 'Catalog', lines: [catalog] },
      {
        name: 'Servers',
        lines: describeServers(url, configFile),
        // Each server is announced once it responds.
        ...(configFile?.setup.file.servers.length && { isDetail: true }),
      },
      {
        name: 'Views',
        lines: views.map(
          ({ name, title }) => `${url}/${name}${title === name ? '' : ` (${title})`}`,
        ),
      },
      { name: 'Data', lines: [findStoreKind(store).describeBriefly(store)], isDetail: true },
      {
        name: 'Settings',
        lines: envFile ? [`from .env (${listSettings(envFile).join(', ') || 'none'})`] : [],
      },
    ],
    hints: renderHints(config, facts, node),
  };
}

/** One line per server, in the order of the file. */
function describeServers(url: string, configFile: BannerFacts['configFile']) {
  if (configFile === undefined)
    return ['none (--config FILE puts your MCP servers behind the gateway)'];
  const { servers } = configFile.setup.file;
  const [first] = servers;
  if (first === undefined) return [`none in ${configFile.path}`];
  return [
    ...servers.map((server) => {
      const { verb, describe } = findTransport(server);
      // Without arguments and URL paths, which may be secret.
      return `${server.name} (${verb} ${describe(server).target})`;
    }),
    `A single server: ${url}/${first.name} has everything of ${first.name}, under its own names`,
  ];
}

/** Fits into a terminal of 40 lines together with the facts. */
function renderHints({ server, auth }: Config, facts: BannerFacts, node: string) {
  const { baseUrl, catalogFile } = server;
  const entry = {
    name: DEFAULT_ENTRY_NAME,
    url: `${baseUrl}/mcp`,
    ...(!auth.required && { isOpen: true as const }),
  };
  // Clients that connect from their vendor's servers cannot reach this machine.
  const local = CLIENT_SETUPS.filter(({ isRemote }) => !isRemote);
  const curl = local.filter(({ id }) => id === 'curl');
  const [major = 0, minor = 0] = node.split('.').map(Number);
  const runsInspector = major > 22 || (major === 22 && minor >= 19);
  const commands = local.filter(
    ({ id, language }) =>
      language === 'sh' && id !== 'curl' && (id !== 'inspector' || runsInspector),
  );
  const files = local.filter(({ language }) => language === 'json');
  const getToken = facts.tokenUrl === undefined ? [] : [`TOKEN=$(curl -s ${facts.tokenUrl})`];
  const file = facts.configFile?.setup.file;
  // The demo is part of the checkout, and calls the built-in tools.
  const hasDemo =
    isInCheckout() && catalogFile === undefined && file?.builtIn !== false && !file?.rules.length;
  const hasServers = (file?.servers.length ?? 0) > 0;
  const sections = [
    ...(hasDemo
      ? [
          [
            'Try it in a second terminal:',
            `npm run demo${baseUrl === DEFAULT_BASE_URL ? '' : ` ${baseUrl}/mcp`}\n`,
          ],
        ]
      : []),
    [
      `Connect a client with a command${hasServers ? ', replacing its entries for these servers' : ''}:`,
      ...commands.map((setup) => setup.render(entry)),
    ],
    [
      `or by a file (${describeCommand(['connect'], process)} CLIENT says more):`,
      ...files.flatMap((setup) => [
        `${setup.title}: ${setup.place}`,
        `  ${JSON.stringify(JSON.parse(setup.render(entry)))}`,
      ]),
    ],
    [
      'or call it with curl:',
      ...getToken,
      ...curl.flatMap((setup) => setup.render(entry).split('\n')),
    ],
  ];
  return sections
    .map(([title, ...lines]) => `  ${title}\n${lines.map((line) => `    ${line}\n`).join('')}`)
    .join('');
}

// Announces the servers behind the gateway, each as soon as its state is known.

const LOOK_EVERY_MS = 200;
/** Interval after all servers have been announced. */
const WATCH_EVERY_MS = 1000;
/** How long to wait for the tools of a running server, and for an untried server. */
const PATIENCE_MS = 5000;

/** Prints `✓ git     12 tools`, and reports when a failed server responds again. Call the returned function to stop. */
export function announceServers(
  listServers: () => readonly ServerFacts[],
  say: (line: string) => void,
): () => void {
  const clock = systemClock;
  const told = new Set<string>();
  const toldToStart = new Set<string>();
  const down = new Set<string>();
  const startedAt = clock.monotonic();
  let cancel = () => {};

  function look() {
    const servers = listServers();
    const width = Math.max(0, ...servers.map(({ name }) => name.length));
    const isLate = clock.monotonic() - startedAt > PATIENCE_MS;
    for (const server of servers) {
      const print = (mark: string, words: string) =>
        say(`  ${mark} ${server.name.padEnd(width)}  ${words}`);
      if (told.has(server.name)) {
        // A failed server responds again, but the terminal still shows the failure.
        const { name, isUp, tools } = server;
        if (isUp === false) down.add(name);
        if (isUp === true && tools !== undefined && down.delete(name))
          print('✓', `answers again, ${countNoun(tools, 'tool')}`);
        continue;
      }
      const state = describeState(server, isLate);
      if (state !== undefined) {
        told.add(server.name);
        if (server.isUp === false) down.add(server.name);
        print(...state);
      } else if (isLate && !toldToStart.has(server.name)) {
        // At first use, npx has to download the server.
        toldToStart.add(server.name);
        print('…', 'still starting');
      }
    }
    cancel = clock.after(told.size < servers.length ? LOOK_EVERY_MS : WATCH_EVERY_MS, look);
  }

  look();
  return () => cancel();
}

/** Undefined as long as the state may change on its own. */
function describeState(
  { isUp, reason, tools, isPersonal }: ServerFacts,
  isLate: boolean,
): readonly [mark: string, words: string] | undefined {
  if (isUp === false) return ['✗', reason ?? 'it does not answer'];
  if (isUp === true && tools !== undefined) return ['✓', countNoun(tools, 'tool')];
  if (!isLate || !isPersonal) return undefined;
  return isUp ? ['✓', 'tools differ between users'] : ['·', 'starts on first use'];
}
