// §25.2: measures the cost for a model of the lists of servers and views, for commands that query the servers.

import { builtInCatalog } from '../../built-in/index.ts';
import {
  type FetchedTools,
  type ListCost,
  listFetchedPaths,
  measureLists,
  WARNED_TOKENS,
} from '../../catalog/budget/list-costs.ts';

import { type FetchedList, fetchList } from '../../catalog/fetch-list.ts';
import { createFindIdlePatterns } from '../../catalog/idle-patterns.ts';
import type { Config } from '../../config/config.ts';
import type { Setup } from '../../gateway/configuration/gateway-file.ts';
import { createLockPolicy } from '../../lock/lock.ts';
import { joinPolicies } from '../../mcp/calls/policy.ts';
import { listTools, serveOwnCatalog } from '../../mcp/catalog/own-catalog.ts';
import { GATEWAY_CALLER } from '../../mcp/upstream/upstream.ts';
import { systemClock } from '../../platform/clock.ts';
import { countNoun } from '../../platform/text.ts';
import { dependsOnUser, findFacts, needsUser } from '../../servers/transport/transports.ts';

import type { InvokedProcess } from '../command-line/invocation.ts';
import { formatCount } from '../command-line/terminal.ts';
import { askServers } from './open-servers.ts';
import { readSetup } from './read-setup.ts';

/** The user's own tools (`--catalog`) are not loaded, and not counted. */
export async function measureFile(
  { file, lock }: Setup,
  { server }: Config,
  tools: FetchedTools['tools'],
) {
  const personal = new Set(file.servers.filter(dependsOnUser).map(({ name }) => name));
  const hasOwnTools = server.catalogFile !== undefined;
  const ownCatalog = serveOwnCatalog(builtInCatalog);
  const paths = await listFetchedPaths(
    { ...file, builtIn: file.builtIn && !hasOwnTools },
    { tools, personal },
    ownCatalog,
    joinPolicies(lock === undefined ? [] : [createLockPolicy(lock)]),
  );
  const ownTools = file.builtIn ? await listTools(ownCatalog) : [];
  const idle = createFindIdlePatterns(
    file,
    findFacts,
  )({
    findLists: (name, kind) =>
      kind === 'tools' ? [tools.get(name)?.items ?? []].filter(() => tools.has(name)) : [],
    findBuiltIn: (kind) =>
      kind !== 'tools' || hasOwnTools ? undefined : ownTools.map(({ name }) => String(name)),
  });
  /** `idle`: names in the file that match no server's items. */
  return { costs: await measureLists(paths, systemClock), idle };
}

/** `/mcp/research: 8 tools, about 1,930 tokens`. */
export function describeCost({ kind, name, tools, tokens, isPersonal }: ListCost): string {
  const path = kind === 'all' ? '/mcp' : `/mcp/${name}`;
  if (isPersonal && kind === 'server' && tools === 0)
    return `${path}: unknown, since it did not answer or only lists tools for users`;
  const more = isPersonal
    ? ', without servers that did not answer or only list tools for users'
    : '';
  return `${path}: ${countNoun(tools, 'tool')}, about ${formatCount(tokens)} tokens${more}`;
}

export const isCostly = ({ tokens }: ListCost): boolean => tokens > WARNED_TOKENS;

export const describeExpensive = ({ expensive }: ListCost): string =>
  expensive.map(({ name, tokens }) => `${name} ${formatCount(tokens)}`).join(', ');

// `postern config --lists`: requests the servers' lists.

/** The first `npx` run downloads packages. */
const TIME_LIMIT_MS = 60_000;

/** Undefined without a readable configuration file. Skips servers that do not respond; the log says so. */
export async function askLists(config: Config, process: InvokedProcess) {
  const { configFile: path } = config.server;
  const parsed = path === undefined ? undefined : await readSetup(path, config, process.env);
  if (parsed === undefined || parsed.kind === 'problems') return undefined;
  const { setup } = parsed;
  const tools = new Map<string, FetchedList>();
  await askServers(setup.file, process, TIME_LIMIT_MS, async (server, openOne, log) => {
    if (needsUser(server)) return;
    try {
      const listed = await openOne(server, (upstream, signal) =>
        fetchList(upstream, 'tools', GATEWAY_CALLER, signal),
      );
      tools.set(server.name, listed);
    } catch (cause) {
      log.warn(`Server ${server.name}: its tools could not be listed.`, { cause });
    }
  });
  return measureFile(setup, config, tools);
}
