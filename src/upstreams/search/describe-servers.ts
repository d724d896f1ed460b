// §25.3: what there is to be found, for the description of search_tools: the servers, and what they are for.

import { countNoun } from '../../platform/text.ts';
import { BUILT_IN, type Entry } from '../catalog/prepare-list.ts';

/** Characters of all. */
const MAX_TEXT = 2_000;
/** Tools of each that are named; fewer where there are many servers. */
const EXAMPLES = [5, 3, 1, 0] as const;
/** Characters of a tool's name: of a longer one nothing is said. */
const MAX_EXAMPLE = 40;

/**
 * By names of tools alone, which the lock, the rules and the guards have let through for this caller: a server's own words about
 * itself would stand here as the gateway's.
 */
export function describeServers(entries: readonly Entry[]): string {
  const names = new Map<string, string[]>();
  for (const { server, ownName } of entries) {
    const known = names.get(server);
    if (known === undefined) names.set(server, [ownName]);
    else known.push(ownName);
  }
  const servers = [...names].sort(([one], [other]) => (one < other ? -1 : 1));
  for (const count of EXAMPLES) {
    const text = write(servers, count);
    if (text.length <= MAX_TEXT) return text;
  }
  return write(servers.slice(0, MAX_NAMED), 0, servers.length - MAX_NAMED);
}

/** Names of servers that stand in `MAX_TEXT` characters, each with a number. */
const MAX_NAMED = 30;

type ServerTools = readonly (readonly [string, readonly string[]])[];

function write(servers: ServerTools, count: number, left = 0): string {
  const parts = servers.map(([server, tools]) => {
    const examples = spread(
      tools.filter((tool) => tool.length <= MAX_EXAMPLE),
      count,
    );
    const more = examples.length < tools.length ? ', …' : '';
    const told = examples.length === 0 ? '' : `: ${examples.join(', ')}${more}`;
    return `${server === BUILT_IN ? 'the gateway' : server} (${countNoun(tools.length, 'tool')}${told})`;
  });
  return `There are tools of ${parts.join('; ')}${left > 0 ? `; and ${countNoun(left, 'other server')}` : ''}.`;
}

/** So many of them from all over the list, since servers group their tools by what they deal with. */
const spread = (tools: readonly string[], count: number): readonly string[] =>
  tools.length <= count
    ? tools
    : Array.from(
        { length: count },
        (_, at) => tools[Math.floor((at * tools.length) / count)] ?? '',
      );
