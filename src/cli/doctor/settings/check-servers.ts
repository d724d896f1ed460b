// The MCP servers of the configuration file, asked as the gateway asks them.

import {
  countUndeclared,
  type FetchedList,
  fetchList,
  type UndeclaredList,
} from '../../../catalog/fetch-list.ts';
import { listGuardServers, type Setup } from '../../../catalog/plan.ts';
import type { Config } from '../../../config/config.ts';
import type { Problem } from '../../../config/problem.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  UpstreamError,
} from '../../../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../../../mcp/upstream/upstream-config.ts';
import { describeCause } from '../../../platform/log.ts';
import { countNoun } from '../../../platform/text.ts';
import { NEXT_START } from '../../../servers/stdio/stdio-upstream.ts';
import {
  dependsOnUser,
  describeServer,
  needsUser,
  readConnectionServer,
} from '../../../servers/transport/transports.ts';
import { createTimeLimit, openServers, readTokenUser } from '../../setup/open-servers.ts';
import {
  describeProgramUser,
  findProgramUserProblems,
  warnOfOwnUser,
} from '../../setup/program-users.ts';
import { type Found, failure, ok, unknown, warning } from '../finding.ts';
import { createCollectingLog, type LogEntry } from '../instruments.ts';
import { checkLists } from './check-lists.ts';
import { checkLogins } from './check-logins.ts';
import { allowOwnProcess, checkIsolation, checkNames } from './check-tools.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

const CHECK = 'server';
const USER_CHECK = 'server.user';
/** A first `npx` downloads. */
const TIME_LIMIT_MS = 60_000;

export async function checkServers(settings: SettingsAtHand): Promise<Found> {
  const { config, setup, env, token, clock } = settings;
  if (setup === undefined || setup.file.servers.length === 0) return undefined;
  const user = token === undefined ? undefined : readTokenUser(token, clock.now());
  const caller: UpstreamCaller = user === undefined ? GATEWAY_CALLER : { ...GATEWAY_CALLER, user };
  const userProblems = await findProgramUserProblems(setup.file.servers);
  // Those are asked as guards.
  const areGuards = new Set(listGuardServers(setup.file));
  const usable = setup.file.servers.filter(
    (server) =>
      !areGuards.has(server.name) &&
      (userProblems.length === 0 || describeServer(server).program?.runAs === undefined),
  );
  const { log, entries } = createCollectingLog();
  const tools = new Map<string, FetchedList>();
  const servers = await openServers({ ...setup.file, servers: usable }, { env, log });
  try {
    const answers = await Promise.all(
      usable.map((server) => {
        if (readConnectionServer(server) !== undefined) return [];
        return needsUser(server) && user === undefined
          ? unknown(CHECK, {
              what: `whether ${server.name} can be used: it answers users only.`,
              remedy: 'give an access token of a user: --token-file FILE.',
            })
          : checkServer(
              server,
              servers.openUpstream(allowOwnProcess(server)),
              dependsOnUser(server) ? caller : GATEWAY_CALLER,
              { file: setup.file, logged: entries, note: (list) => tools.set(server.name, list) },
            );
      }),
    );
    return [
      ...checkUsers(setup.file.servers, userProblems, config),
      ...answers.flat(),
      ...(await checkLogins(
        usable.flatMap((server) => readConnectionServer(server) ?? []),
        settings,
      )),
      ...(await checkLists(setup, config, tools)),
    ];
  } finally {
    await servers.close();
  }
}

/** Which user of the system programs run as. */
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
    ...problems.map(({ message }) => failure(USER_CHECK, { what: message, ...advice })),
    ...warnOfOwnUser(servers, config).map((text) => warning(USER_CHECK, { what: text, ...advice })),
    others.length > 0 && problems.length === 0
      ? ok(USER_CHECK, `Programs run as other users than the gateway: ${others.join(', ')}.`)
      : undefined,
  ];
}

interface ServerCheckParts {
  readonly file: Setup['file'];
  readonly logged: readonly LogEntry[];
  /** Told what it lists. */
  note(tools: FetchedList): void;
}

async function checkServer(
  config: UpstreamConfig,
  upstream: Upstream,
  caller: UpstreamCaller,
  { file, logged, note }: ServerCheckParts,
) {
  const { name } = config;
  const { signal, tooLate } = createTimeLimit(TIME_LIMIT_MS);
  try {
    const tools = await Promise.race([fetchList(upstream, 'tools', caller, signal), tooLate]);
    note(tools);
    const count = tools.items.length;
    const has = count === 0 ? 'no tools' : countNoun(count, 'tool');
    const what = `${name} answers, and has ${has}. ${tellEra(upstream, caller)}`;
    return [
      (count === 0 ? warning : ok)(CHECK, what),
      ...(await countUndeclared(upstream, caller, signal)).map((list) => warnOfList(name, list)),
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

/** An address that a refusal names is for operators alone. */
const describeError = (error: unknown): string =>
  error instanceof UpstreamError && error.cause === undefined
    ? error.logMessage
    : describeCause(error);
const warnOfList = (server: string, { list, count }: UndeclaredList) =>
  warning('server.undeclared', {
    what: `${server} does not declare ${list}; its list has ${count}.`,
    why: `A server is asked only for what its capabilities declare: nobody sees these ${list}.`,
    setting: 'POSTERN_CONFIG',
    remedy: `have the server declare ${list} in the capabilities that it answers the handshake with.`,
  });

/** In the words of the log, which knows what to do about a program, and the last that it wrote. */
function describeFailure(config: UpstreamConfig, error: unknown, logged: readonly LogEntry[]) {
  const { name } = config;
  const { program, advice: ownAdvice } = describeServer(config);
  const entry = program
    ? logged.find(({ message, facts }) => facts.server === name && UNAVAILABLE.test(message))
    : undefined;
  const [said, advice] = entry?.message.replace(UNAVAILABLE, '').split(NEXT_START) ?? [];
  const lastWords = entry?.facts.errorOutput;
  return failure(CHECK, {
    what: `${name} cannot be used: ${said ?? describeError(error)}.`,
    ...(Array.isArray(lastWords) && {
      why: `The last that it wrote to its error output: ${lastWords.join(' | ')}`,
    }),
    setting: 'POSTERN_CONFIG',
    remedy: advice || ownAdvice,
  });
}

const UNAVAILABLE = /^(?:The|A process of the) MCP server \S+ is not available: /;

/** What it is spoken to in, and whether the file demands that. */
function tellEra(upstream: Upstream, caller: UpstreamCaller): string {
  const { config, era } = upstream;
  const version = upstream.peekDescription(caller)?.protocolVersion;
  const way = era === 'stateless' ? 'stateless' : 'with sessions';
  const reason = config.era === 'auto' ? '' : `, as "era": "${config.era}" demands`;
  return `It is spoken to ${way}${version === undefined ? '' : ` (MCP ${version})`}${reason}.`;
}
