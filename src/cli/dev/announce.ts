// The screen of postern dev once it serves: all of it at first, then what has changed.

import type { ServerFacts } from '../../catalog/upstream-catalogs.ts';
import type { Config } from '../../config/config.ts';
import { findStoreKind } from '../../config/groups/store.ts';
import { CLIENT_SETUPS, DEFAULT_ENTRY_NAME } from '../../pages/client-setups.ts';
import { systemClock } from '../../platform/clock.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { PACKAGE_VERSION } from '../../platform/own-files.ts';
import { countNoun } from '../../platform/text.ts';
import { leaveOutNextStart } from '../../servers/stdio/stdio-upstream.ts';
import { findTransport } from '../../servers/transport/transports.ts';
import { listSettings } from '../command-line/env-file.ts';
import { describeCommand, isInCheckout } from '../command-line/invocation.ts';
import type { EnvFile } from '../command-line/read-input.ts';
import type { ConfigFile } from '../setup/config-file.ts';

interface Announcement extends Banner {
  /** A summary of how much is served, and what was kept. */
  readonly summary: string;
  /** The changed files that were loaded; none after the first start, and where somebody asked for that. */
  readonly loaded: readonly string[];
}

/** `hasKeys` says that the user can ask for the rest by keys. */
export function createAnnouncer(write: (text: string) => void, hasKeys: boolean) {
  // Names of files and what these say may be another's: nothing of them moves the cursor of a terminal.
  const print = (text: string) => write(escapeInvisible(text));
  let told: Announcement | undefined;

  return {
    announce(announcement: Announcement): void {
      const { facts, summary, loaded } = announcement;
      if (told === undefined && loaded.length === 0) {
        print(hasKeys ? renderShortBanner(announcement) : renderBanner(announcement));
      } else {
        const why = loaded.length === 0 ? '' : `: ${loaded.join(', ')} changed`;
        // Another process has told of them before. Only .env can have changed them meanwhile, and which is not known here.
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
    /** Prints what clients are given, where the banner left it out. */
    printHints() {
      if (told !== undefined) print(`\n${told.hints}`);
    },
  };
}

interface Fact {
  readonly name: string;
  readonly lines: readonly string[];
  /** Left out of the short banner. */
  readonly isDetail?: true;
}

interface Banner {
  readonly facts: readonly Fact[];
  /** Commands to type next, and what clients are given: the same after most changes. */
  readonly hints: string;
}

const HEAD = `
  Postern ${PACKAGE_VERSION} is running for development. Do not use it in production.
`;

export const renderBanner = ({ facts, hints }: Banner): string => `${HEAD}
${renderFacts(facts)}
${hints}
  LOG_LEVEL=debug logs every request. Press Ctrl+C to stop.`;

/** For a terminal in which keys can be pressed for the rest. */
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

// The banner of postern dev: what is served, and how clients connect.

interface BannerFacts {
  readonly login: string;
  /** Answers with an access token, where the development provider gives them out. */
  readonly tokenUrl: string | undefined;
  readonly configFile: Pick<ConfigFile, 'path' | 'setup'> | undefined;
  readonly envFile: EnvFile | undefined;
}

const DEFAULT_BASE_URL = 'http://localhost:3000';

/** `node` is the version that runs it. */
export function createBanner(
  config: Config,
  facts: BannerFacts,
  node: string = process.versions.node,
): Banner {
  const { server, store } = config;
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
      { name: 'Catalog', lines: [catalog] },
      {
        name: 'Servers',
        lines: describeServers(url, configFile),
        // Each is told of by itself once it answers.
        ...(configFile?.setup.file.servers.length && { isDetail: true }),
      },
      ...(views.length === 0
        ? []
        : [
            {
              name: 'Views',
              lines: views.map(
                ({ name, title }) => `${url}/${name}${title === name ? '' : ` (${title})`}`,
              ),
            },
          ]),
      { name: 'Data', lines: [findStoreKind(store).describeBriefly(store)], isDetail: true },
      ...(envFile === undefined
        ? []
        : [
            {
              name: 'Settings',
              lines: [`from .env (${listSettings(envFile).join(', ') || 'none'})`],
            },
          ]),
    ],
    hints: renderHints(config, facts, node),
  };
}

/** A line for each, in the order of the file. */
function describeServers(url: string, configFile: BannerFacts['configFile']): readonly string[] {
  if (configFile === undefined)
    return ['none (--config FILE puts your MCP servers behind the gateway)'];
  const { servers } = configFile.setup.file;
  const [first] = servers;
  if (first === undefined) return [`none in ${configFile.path}`];
  return [
    ...servers.map((server) => {
      const { verb, describe } = findTransport(server);
      // Without what may be secret: arguments, and what follows the host.
      return `${server.name} (${verb} ${describe(server).target})`;
    }),
    `A single server: ${url}/${first.name} has everything of ${first.name}, under its own names`,
  ];
}

/** Fits in a terminal of 40 lines together with the facts. */
function renderHints({ server, auth }: Config, facts: BannerFacts, node: string) {
  const { baseUrl, catalogFile } = server;
  const entry = {
    name: DEFAULT_ENTRY_NAME,
    url: `${baseUrl}/mcp`,
    ...(!auth.required && { isOpen: true as const }),
  };
  // Clients that connect from their vendor's servers do not reach this machine.
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
  // The demo comes with the checkout, and calls what is built in.
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

// Lines of postern dev about the servers behind the gateway, each once it is known how it is.

const LOOK_EVERY_MS = 200;
/** Once each has been announced. */
const WATCH_EVERY_MS = 1000;
/** Time to wait for the tools of a server that answers, and for a server that nobody has tried. */
const PATIENCE_MS = 5000;

/** `✓ git     12 tools`; of one that failed also that it answers again. The result ends it. */
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
        // One that failed and answers again: the screen still shows that it failed.
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
        // The first time, npx has to download it.
        toldToStart.add(server.name);
        print('…', 'still starting');
      }
    }
    cancel = clock.after(told.size < servers.length ? LOOK_EVERY_MS : WATCH_EVERY_MS, look);
  }

  look();
  return () => cancel();
}

/** Undefined while it may still change by itself. */
function describeState(
  { isUp, reason, tools, isPersonal }: ServerFacts,
  isLate: boolean,
): readonly [mark: string, words: string] | undefined {
  // Without the time until the next start, which would soon be wrong on the screen.
  if (isUp === false) return ['✗', leaveOutNextStart(reason ?? 'it does not answer')];
  if (isUp === true && tools !== undefined) return ['✓', countNoun(tools, 'tool')];
  if (!isLate || !isPersonal) return undefined;
  return isUp ? ['✓', 'tools differ between users'] : ['·', 'starts on first use'];
}
