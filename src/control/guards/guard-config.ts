// §26.1: `guards` of the configuration file, and their validation against the rest of it.

import { choice, freeText, globText, patternText } from '../../config/file/shapes/scalar.ts';
import {
  defineMember,
  type FilePlace,
  list,
  type Member,
  object,
  report,
  type Shape,
} from '../../config/file/shapes/shape.ts';
import { GUARD_POINTS, type GuardConfig, type GuardUse } from '../../mcp/calls/guards.ts';
import {
  type BoundGuard,
  type FileAccess,
  findServerProblem,
  type GuardKind,
  type NamedServers,
  timeout,
  version,
} from './define-guard.ts';
import { httpGuard } from './http.ts';
import { linksGuard } from './links.ts';
import { mcpGuard } from './mcp.ts';
import { moduleGuard } from './module.ts';
import { secretsGuard } from './secrets.ts';
import { sizeGuard } from './size.ts';

/** In the order of the documentation. */
export const GUARD_KINDS = [
  httpGuard,
  mcpGuard,
  moduleGuard,
  secretsGuard,
  sizeGuard,
  linksGuard,
] as const;

/** Binds a guard to its kind. */
export function bindGuard(use: GuardUse, kinds: readonly GuardKind[] = GUARD_KINDS): BoundGuard {
  for (const { bind } of kinds) {
    const bound = bind(use);
    if (bound !== undefined) return bound;
  }
  throw new Error(`There is no guard of the kind ${use.kind}`);
}

/** Members of several kinds come last. */
const ASKED_ELSEWHERE: readonly Member<unknown>[] = [timeout, version];

const besideOf = ({ members }: GuardKind) =>
  members.filter((one) => !ASKED_ELSEWHERE.includes(one));

const listNames = (members: readonly { readonly name: string }[], last: string): string =>
  members
    .map(({ name }) => name)
    .join(', ')
    .replace(/, (?=[^,]*$)/, ` ${last} `);

/** `use` of a guard. */
export function createUseShape(kinds: readonly GuardKind[]): Shape<GuardUse> {
  const comeWithIt = kinds.filter(({ naming }) => naming === undefined);
  const builtIn = defineMember(
    'builtIn',
    choice(...comeWithIt.map(({ kind }) => kind)),
    `A guard that comes with the gateway: ${comeWithIt.map(({ kind, summary }) => `${kind} ${summary}`).join(', ')}.`,
  );
  const namings = [...kinds.flatMap(({ naming }) => naming ?? []), builtIn];
  const useMembers: readonly Member<unknown>[] = [
    ...kinds.flatMap((kind) => (kind.naming === undefined ? [] : [kind.naming, ...besideOf(kind)])),
    builtIn,
    ...describeShared(comeWithIt),
    timeout,
    version,
  ];

  return object<GuardUse>({
    allowed: `an object with ${listNames(namings, 'or')}`,
    members: useMembers,
    schema: { oneOf: namings.map(({ name }) => ({ required: [name] })) },
    build(members) {
      const { has, read, report: reportHere } = members;
      const given = namings.filter(has);
      const [named] = given;
      if (named === undefined) {
        return reportHere(`It names no guard. Write one of ${listNames(namings, 'and')}.`);
      }
      if (given.length > 1) {
        return reportHere(
          `It names ${given.map(({ name }) => name).join(' and ')}. Keep one of them.`,
        );
      }
      // Members of a misspelled kind are not reported.
      const wanted = named === builtIn ? read(builtIn) : named.name;
      const kind = kinds.find((one) => one.kind === wanted);
      if (kind === undefined) return undefined;
      const hint =
        kind.naming === httpGuard.naming ? ' Write it inside http, if it belongs there.' : '';
      // A member without effect is a mistake.
      for (const member of useMembers) {
        const isRight =
          namings.includes(member) || kind.members.some(({ name }) => name === member.name);
        if (has(member) && !isRight)
          reportHere(`${member.name} has no effect here. Remove it.${hint}`, member);
      }
      return kind.read(members);
    },
  });
}

/** Members of built-in guards, without duplicates, with their kinds. */
const describeShared = (comeWithIt: readonly GuardKind[]): readonly Member<unknown>[] =>
  [...new Set(comeWithIt.flatMap(besideOf))].map(({ name, shape, summary }) => {
    const kinds = comeWithIt.filter(({ members }) => members.some((one) => one.name === name));
    const owners = kinds.map(({ kind }) => ({ name: kind }));
    return defineMember(name, shape, `With ${listNames(owners, 'and')}: ${summary}`);
  });

const NAME_PATTERN = '^[a-z][a-z0-9-]{0,31}$';

const guardMembers = {
  name: defineMember(
    'name',
    patternText(NAME_PATTERN, 'a letter, then up to 31 letters, digits and hyphens, in lower case'),
    'Its name in the log, the audit log and metrics.',
  ),
  on: defineMember(
    'on',
    list(choice(...GUARD_POINTS), {
      allowed: `a list of the messages that it checks: ${GUARD_POINTS.join(', ')}`,
      isNotEmpty: true,
    }),
    'The messages that it checks.',
  ),
  servers: defineMember(
    'servers',
    list(freeText(), { allowed: 'a list of names of servers', isNotEmpty: true }),
    'Names of servers in this file. Without it, the guard checks all of them, and the built-in catalogue.',
  ),
  tools: defineMember(
    'tools',
    list(globText('a tool’s name as clients of /mcp see it, in which * is any text'), {
      allowed: 'a list of tool names, in which * is any text',
      isNotEmpty: true,
    }),
    'The only tools that it checks: names as clients of /mcp see them, in which * is any text. Prompts and resources are not affected.',
  ),
  use: defineMember('use', createUseShape(GUARD_KINDS), 'The guard to use.'),
  onError: defineMember(
    'onError',
    choice('refuse', 'pass'),
    'The decision while it cannot be reached, or its answer is invalid: refuse, the default, or pass.',
  ),
};

/** A guard and its position in the file, for problems. */
export interface PlacedGuard {
  readonly config: GuardConfig;
  readonly place: FilePlace;
  readonly line: number;
}

const guardShape: Shape<GuardConfig> = object({
  allowed: 'an object with name, on and use',
  members: Object.values(guardMembers),
  schema: { required: ['name', 'on', 'use'] },
  build({ has, read, report: reportHere }) {
    for (const member of [guardMembers.name, guardMembers.on, guardMembers.use]) {
      if (!has(member)) reportHere(`"${member.name}" is missing.`);
    }
    const name = read(guardMembers.name);
    const on = read(guardMembers.on);
    const use = read(guardMembers.use);
    const servers = read(guardMembers.servers);
    const tools = read(guardMembers.tools);
    const onError = read(guardMembers.onError) ?? 'refuse';
    return name === undefined || on === undefined || use === undefined
      ? undefined
      : { name, on: [...new Set(on)], servers, tools, use, onError };
  },
});

export const guardsShape: Shape<readonly PlacedGuard[]> = list(
  {
    schema: guardShape.schema,
    read(node, place) {
      const config = guardShape.read(node, place);
      return config && { config, place, line: node.line };
    },
  },
  { allowed: 'a list of guards' },
);

/** Resolves paths and reports problems of each guard. */
export const completeGuards = (
  placed: readonly PlacedGuard[],
  servers: NamedServers,
  files: FileAccess,
): readonly GuardConfig[] =>
  placed.map(({ config, place, line }, index) => {
    const reportHere = (problem: string) => report(place, line, problem);
    const { name, use, servers: named = [] } = config;
    const namesake = placed.slice(0, index).find((earlier) => earlier.config.name === name);
    if (namesake !== undefined)
      reportHere(`The guard in line ${namesake.line} is called ${name}, too. Rename one of them.`);
    for (const server of named) {
      const problem = findServerProblem('servers', server, servers);
      if (problem !== undefined) reportHere(problem);
    }
    const completed = bindGuard(use).complete?.(servers, files, reportHere);
    return completed === undefined ? config : { ...config, use: completed };
  });
