// §26.1: what is wrong with guards beside the rest of the file, told at start.

import { report } from '../../config/file/shapes/shape.ts';
import { findNearestName } from '../../platform/nearest-name.ts';
import { quote } from '../../platform/text.ts';
import type { GuardConfig, PlacedGuard } from './guard-config.ts';

/** Servers of the file. `personalBy` is the member by which one is another for each user; undefined where it is the same for all. */
type GuardedServers = readonly {
  readonly name: string;
  readonly personalBy: 'auth' | 'isolation' | undefined;
}[];

interface FileAccess {
  /** An absolute path, for one that is relative to the file. */
  resolvePath(path: string): string;
  /** @throws Error with what is wrong with the file. */
  readText(path: string): string;
}

/** With what their paths lead to. Reports at each what is wrong with it. */
export const completeGuards = (
  placed: readonly PlacedGuard[],
  servers: GuardedServers,
  files: FileAccess,
): readonly GuardConfig[] =>
  placed.map((guard, index) => {
    const { config, place, line } = guard;
    for (const problem of findProblems(config, placed.slice(0, index), servers, files)) {
      report(place, line, problem);
    }
    const { use } = config;
    return use.kind === 'module'
      ? { ...config, use: { ...use, path: files.resolvePath(use.path) } }
      : config;
  });

function findProblems(
  { name, servers: named = [], use }: GuardConfig,
  earlier: readonly PlacedGuard[],
  servers: GuardedServers,
  files: FileAccess,
): readonly string[] {
  const namesake = earlier.find(({ config }) => config.name === name);
  return [
    ...(namesake === undefined
      ? []
      : [`The guard in line ${namesake.line} is called ${name}, too. Rename one of them.`]),
    ...named.flatMap((server) => findServerProblem('servers', server, servers) ?? []),
    ...findUseProblems(use, servers, files),
  ];
}

function findUseProblems(
  use: GuardConfig['use'],
  servers: GuardedServers,
  files: FileAccess,
): readonly string[] {
  if (use.kind === 'module') {
    try {
      files.readText(files.resolvePath(use.path));
      return [];
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return [`use.module: the file cannot be read (${reason}).`];
    }
  }
  if (use.kind !== 'mcp') return [];
  const problem = findServerProblem('use.mcp', use.server, servers);
  if (problem !== undefined) return [problem];
  const personalBy = servers.find(({ name }) => name === use.server)?.personalBy;
  return personalBy === undefined ? [] : [`use.mcp: ${use.server} ${PERSONAL[personalBy]}`];
}

/** The gateway itself asks a guard, and has nobody's token or process. */
const PERSONAL = {
  auth: 'is told who calls ("auth"), and a guard is asked by the gateway itself. Give it "headers" in place of "auth".',
  isolation:
    'has processes of its own for each user or session, and a guard is asked by the gateway itself. Give it "isolation": "shared".',
} as const;

function findServerProblem(
  member: string,
  name: string,
  servers: GuardedServers,
): string | undefined {
  const names = servers.map((server) => server.name);
  if (names.includes(name)) return undefined;
  const nearest = findNearestName(name, names);
  const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
  return `${member}: there is no server ${quote(name, 64)} in this file.${hint}`;
}
