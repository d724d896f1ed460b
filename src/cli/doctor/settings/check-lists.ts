// §25.2: what the lists of tools cost a model; §18.9: what the file names, and no server has.

import { WARNED_TOKENS } from '../../../catalog/budget/list-costs.ts';
import type { FetchedList } from '../../../catalog/fetch-list.ts';
import type { Config } from '../../../config/config.ts';
import type { Setup } from '../../../gateway/configuration/gateway-file.ts';
import { dependsOnUser } from '../../../servers/credentials/server-credentials.ts';
import {
  describeCost,
  describeExpensive,
  formatCount,
  isCostly,
  measureFile,
} from '../../lists/measure-file.ts';
import { type Finding, ok, warning } from '../finding.ts';

const LIST_CHECK = 'lists';
/** The check by which each is known. */
const IDLE_CHECKS = {
  view: 'views',
  guard: 'guard',
  rule: 'approvals',
  server: 'server.exclude',
} as const;

/** `tools` are those of the servers that could be asked, by name. */
export async function checkLists(
  setup: Setup,
  config: Config,
  tools: ReadonlyMap<string, FetchedList>,
): Promise<readonly Finding[]> {
  const personal = new Set(setup.file.servers.filter(dependsOnUser).map(({ name }) => name));
  const { costs, idle } = await measureFile(setup, config, { tools, personal });
  const advice = { setting: 'POSTERN_CONFIG' };
  return [
    ...costs.map((cost) =>
      isCostly(cost)
        ? warning(LIST_CHECK, {
            what: `${describeCost(cost)}.`,
            why: `Each conversation begins with them, and models choose worse from long lists: over ${formatCount(WARNED_TOKENS)} is much. The most expensive: ${describeExpensive(cost)}.`,
            ...advice,
            remedy:
              'leave out tools by "tools" of the server, or give clients a view ("views") with those that they need.',
          })
        : ok(LIST_CHECK, `${describeCost(cost)}.`),
    ),
    ...idle.map(({ of, message }) => warning(IDLE_CHECKS[of], { what: message, ...advice })),
  ];
}
