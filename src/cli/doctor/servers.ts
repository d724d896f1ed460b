// Checks the MCP servers in the configuration file, contacted as the gateway does.
import { WARNED_TOKENS } from '../../catalog/budget/list-costs.ts';

import { countUndeclared, type FetchedList, fetchList } from '../../catalog/fetch-list.ts';
import { listGuardServers } from '../../catalog/plan.ts';
import { createNaming, createPrepareList } from '../../catalog/prepare-list.ts';
import type { Config } from '../../config/config.ts';
import { ConfigError, type Problem } from '../../config/problem.ts';
import type { Setup } from '../../gateway/configuration/gateway-file.ts';
import { tryGuards } from '../../gateway/guard-servers.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  UpstreamError,
} from '../../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import { describeCause } from '../../platform/log.ts';
import { countNoun } from '../../platform/text.ts';
import { NEXT_START } from '../../servers/stdio/stdio-upstream.ts';
import {
  dependsOnUser,
  describeServer,
  findFacts,
  needsUser,
} from '../../servers/transport/transports.ts';
import { formatCount } from '../command-line/terminal.ts';
import { describeCost, describeExpensive, isCostly, measureFile } from '../setup/measure-lists.ts';
import {
  createTimeLimit,
  EVERY_CAPABILITY,
  openServers,
  readTokenUser,
} from '../setup/open-servers.ts';
import {
  describeProgramUser,
  findProgramUserProblems,
  warnOfOwnUser,
} from '../setup/program-users.ts';
import { defineCheck, failure, ok, unknown, warning } from './finding.ts';
import { createCollectingLog, type LogEntry } from './instruments.ts';
import { checkLogins } from './logins.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

const CHECK = 'server';
const USER_CHECK = 'server.user';
/** The first `npx` run downloads packages. */
const TIME_LIMIT_MS = 60_000;

export const serversCheck = defineCheck({
  section: 'Servers behind the gateway',
  async run(settings: SettingsAtHand) {
    const { config, setup, env, token, clock } = settings;
    if (setup === undefined || setup.file.servers.length === 0) return undefined;
    const user = token === undefined ? undefined : readTokenUser(token, clock.now());
    const caller: UpstreamCaller =
      user === undefined ? GATEWAY_CALLER : { ...GATEWAY_CALLER, user };
    const userProblems = await findProgramUserProblems(setup.file.servers);
    // Guards are checked separately.
    const areGuards = new Set(listGuardServers(setup.file));
    const usable = setup.file.servers.filter(
      (server) =>
        !areGuards.has(server.name) &&
        (userProblems.length === 0 || describeServer(server).program?.runAs === undefined),
    );
    const { log, entries } = createCollectingLog();
    const lists = new Map<string, FetchedList>();
    const servers = await openServers({ ...setup.file, servers: usable }, env, log);
    try {
      const answers = await Promise.all(
        usable.map((server) => {
          if (findFacts(server).connection !== undefined) return [];
          return needsUser(server) && user === undefined
            ? unknown(CHECK, `whether ${server.name} can be used: it only answers users.`, {
                remedy: 'pass an access token of a user: --token-file FILE.',
              })
            : checkServer(
                server,
                // A server that accepts requests both like the gateway's and like those of a client that supports
                // server-initiated requests.
                servers.openUpstream(describeServer(server).asking ?? server),
                dependsOnUser(server) ? caller : GATEWAY_CALLER,
                { file: setup.file, logged: entries, lists },
              );
        }),
      );
      return [
        ...checkUsers(setup.file.servers, userProblems, config),
        ...answers.flat(),
        ...(await checkLogins(
          usable.flatMap((server) => findFacts(server).connection ?? []),
          settings,
        )),
        ...(await checkLists(setup, config, lists)),
      ];
    } finally {
      await servers.close();
    }
  },
});

/** Reports the system users that programs run as. */
function checkUsers(
  servers: readonly UpstreamConfig[],
  problems: readonly Problem[],
  config: Config,
) {
  const advice = { setting: 'RUN_PROGRAMS_AS' };
  const others = servers.flatMap((server) => {
    const { program } = describeServer(server);
    return program?.runAs ? [`${server.name} as ${describeProgramUser(program.runAs)}`] : [];
  });
  return [
    ...problems.map(({ message }) => failure(USER_CHECK, message, advice)),
    ...warnOfOwnUser(servers, config).map((text) => warning(USER_CHECK, text, advice)),
    others.length > 0 &&
      problems.length === 0 &&
      ok(USER_CHECK, `Programs run as other users than the gateway: ${others.join(', ')}.`),
  ];
}

interface AskedServers {
  readonly file: Setup['file'];
  readonly logged: readonly LogEntry[];
  /** Lists by server name, added as they are read. */
  readonly lists: Map<string, FetchedList>;
}

async function checkServer(
  config: UpstreamConfig,
  upstream: Upstream,
  caller: UpstreamCaller,
  { file, logged, lists }: AskedServers,
) {
  const { name } = config;
  const { signal, tooLate } = createTimeLimit(TIME_LIMIT_MS);
  try {
    const tools = await Promise.race([fetchList(upstream, 'tools', caller, signal), tooLate]);
    lists.set(name, tools);
    const count = tools.items.length;
    const has = count === 0 ? 'no tools' : countNoun(count, 'tool');
    const version = upstream.peekDescription(caller)?.protocolVersion;
    const way = upstream.era === 'stateless' ? 'stateless' : 'with sessions';
    const spoken = `${way}${version === undefined ? '' : ` (MCP ${version})`}`;
    // Says whether the file requires this era.
    const { era } = upstream.config;
    const reason = era === 'auto' ? '' : `, as "era": "${era}" demands`;
    const what = `${name} answers, and has ${has}. It is spoken to ${spoken}${reason}.`;
    return [
      (count === 0 ? warning : ok)(CHECK, what),
      ...(await countUndeclared(upstream, caller, signal)).map((undeclared) =>
        warning(
          'server.undeclared',
          `${name} does not declare ${undeclared.list}; its list has ${undeclared.count}.`,
          {
            why: `The gateway requests only lists that a server's capabilities declare, so no client sees these ${undeclared.list}.`,
            setting: 'POSTERN_CONFIG',
            remedy: `have the server declare ${undeclared.list} in its capabilities during the handshake.`,
          },
        ),
      ),
      ...checkNames(file, config, tools),
      await Promise.race([
        checkIsolation(config, upstream, tools, signal),
        tooLate.catch(() => undefined),
      ]),
    ];
  } catch (error) {
    return describeFailure(config, error, logged);
  } finally {
    await upstream.close(0);
  }
}

/** Uses the words of the log, which include advice about a program and its last output. */
function describeFailure(config: UpstreamConfig, error: unknown, logged: readonly LogEntry[]) {
  const { name } = config;
  const { program, advice: ownAdvice } = describeServer(config);
  const entry = program
    ? logged.find(({ message, facts }) => facts.server === name && UNAVAILABLE.test(message))
    : undefined;
  const [said, advice] = entry?.message.replace(UNAVAILABLE, '').split(NEXT_START) ?? [];
  // The address in a refusal is only for operators.
  const reason =
    error instanceof UpstreamError && error.cause === undefined
      ? error.logMessage
      : describeCause(error);
  const lastWords = entry?.facts.errorOutput;
  return failure(CHECK, `${name} cannot be used: ${said ?? reason}.`, {
    ...(Array.isArray(lastWords) && {
      why: `The end of its error output: ${lastWords.join(' | ')}`,
    }),
    setting: 'POSTERN_CONFIG',
    remedy: advice || ownAdvice,
  });
}

const UNAVAILABLE = /^(?:The|A process of the) MCP server \S+ is not available: /;

// §25.2: the cost of tool lists for a model; §18.9: names in the file that match no server's items.

const LIST_CHECK = 'lists';
/** The check names for unmatched names. */
const IDLE_CHECKS = {
  view: 'views',
  guard: 'guard',
  rule: 'approvals',
  server: 'server.exclude',
} as const;

/** `tools` are the lists of the servers that responded, by server name. */
async function checkLists(setup: Setup, config: Config, tools: ReadonlyMap<string, FetchedList>) {
  const { costs, idle } = await measureFile(setup, config, tools);
  const advice = { setting: 'POSTERN_CONFIG' };
  return [
    ...costs.map((cost) =>
      isCostly(cost)
        ? warning(LIST_CHECK, `${describeCost(cost)}.`, {
            why: `Each conversation begins with them, and models choose worse from long lists: over ${formatCount(WARNED_TOKENS)} is much. The most expensive: ${describeExpensive(cost)}.`,
            ...advice,
            remedy:
              'exclude tools with "tools" of the server, or give clients a view ("views") with those that they need.',
          })
        : ok(LIST_CHECK, `${describeCost(cost)}.`),
    ),
    ...idle.map(({ of, message }) => warning(IDLE_CHECKS[of], message, advice)),
  ];
}

// Tools of a server that clients do not see, or only under a changed name.

const ABLE_CALLER: UpstreamCaller = {
  ...GATEWAY_CALLER,
  clientId: 'postern doctor',
  capabilities: EVERY_CAPABILITY,
};

/**
 * §18.3: finds tools that a program lists only for clients that accept requests, while its `isolation` hides this capability.
 * `upstream` belongs to the config's `asking` variant; `tools` is the list that all users see. Never rejects.
 */
async function checkIsolation(
  config: UpstreamConfig,
  upstream: Upstream,
  tools: FetchedList,
  signal: AbortSignal,
) {
  if (describeServer(config).asking === undefined) return undefined;
  const seen = new Set(tools.items.map(({ name }) => name));
  // Some programs cannot run twice; that is not a mistake in the settings.
  const able = await fetchList(upstream, 'tools', ABLE_CALLER, signal).catch(() => undefined);
  const hidden = able?.items.flatMap(({ name }) => (seen.has(name) ? [] : [String(name)])) ?? [];
  if (hidden.length === 0) return undefined;
  return warning(
    'server.isolation',
    `Tools of ${config.name} that no client sees: ${describeNames(hidden)}.`,
    {
      why: 'It lists them only for clients that accept requests from it. With "isolation": "shared" all users share one process, which cannot say which user a request is for, so it is told that no client accepts requests.',
      setting: 'POSTERN_CONFIG',
      remedy: `if they are needed, set "isolation": "user" for ${config.name} in the configuration file.`,
    },
  );
}

/** A name length that all tested clients support, including the gateway's name, which some prepend. */
const SAFE_LENGTH = 48;

/**
 * Names that clients would change (docs/clients.md): their models then call unknown tools, or never see them. `tools` is the
 * server's list.
 */
function checkNames(file: Setup['file'], config: UpstreamConfig, tools: FetchedList) {
  const prepareList = createPrepareList({
    config,
    naming: createNaming(file),
    policies: { findHidden: () => undefined },
  });
  const names = [...prepareList(tools).byName.keys()];
  return [
    {
      problem: `over ${SAFE_LENGTH} characters`,
      changed: names.filter((one) => one.length > SAFE_LENGTH),
      why: 'Claude Code, OpenCode and Copilot shorten longer names, or refuse them, because they prepend the name of the gateway.',
      remedy: `write "maxNameLength": ${SAFE_LENGTH} at the top of the configuration file, or give ${config.name} a shorter "prefix".`,
    },
    {
      problem: 'with a dot',
      changed: names.filter((one) => one.includes('.')),
      why: 'Some clients replace the dot with another character, and then call a tool that does not exist.',
      remedy: 'write "names": "strict" at the top of the configuration file.',
    },
  ]
    .filter(({ changed }) => changed.length > 0)
    .map(({ problem, changed, why, remedy }) =>
      warning(
        'server.names',
        `Names of tools of ${config.name} ${problem}: ${describeNames(changed)}.`,
        {
          why,
          setting: 'POSTERN_CONFIG',
          remedy,
        },
      ),
    );
}

const SHOWN_NAMES = 5;

/** The first few of several names, and the number of the others. */
function describeNames(names: readonly string[]) {
  const more = names.length - SHOWN_NAMES;
  return [...names.slice(0, SHOWN_NAMES), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

// The guards of the configuration file, each called once with an empty message.

const GUARD_CHECK = 'guard';

export const guardsCheck = defineCheck({
  section: 'Guards',
  async run({ setup, env }: SettingsAtHand) {
    if (setup?.file.guards === undefined) return undefined;
    const { log } = createCollectingLog();
    const servers = await openServers(setup.file, env, log);
    try {
      const tried = await tryGuards(servers.runtime, setup.file, servers.openUpstream);
      return tried.map(({ name, kind, onError, problem }) => {
        if (problem === undefined) return ok(GUARD_CHECK, `The guard ${name} (${kind}) answers.`);
        return failure(GUARD_CHECK, `The guard ${name} (${kind}) has failed: ${problem}.`, {
          why:
            onError === 'refuse'
              ? 'The messages that it should check are refused.'
              : 'The messages that it should check pass ("onError": "pass").',
          setting: 'POSTERN_CONFIG',
          remedy:
            'check that it runs, and check its entry under "guards" in the configuration file.',
        });
      });
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.problems.map((what) =>
        failure(GUARD_CHECK, what, { setting: 'POSTERN_CONFIG' }),
      );
    } finally {
      await servers.close();
    }
  },
});
