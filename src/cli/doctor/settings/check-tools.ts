// Tools of a server that clients do not see, or do not find under the name that they make of it.

import { type FetchedList, fetchList } from '../../../catalog/fetch-list.ts';
import { createNaming } from '../../../catalog/naming.ts';
import type { Setup } from '../../../catalog/plan.ts';
import { createPrepareList } from '../../../catalog/prepare-list.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
} from '../../../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../../../mcp/upstream/upstream-config.ts';
import { describeServer } from '../../../servers/transport/transports.ts';
import { EVERY_CAPABILITY } from '../../setup/open-servers.ts';
import { type Finding, warning } from '../finding.ts';

const ISOLATION_CHECK = 'server.isolation';

const ABLE_CALLER: UpstreamCaller = {
  ...GATEWAY_CALLER,
  clientId: 'postern doctor',
  capabilities: EVERY_CAPABILITY,
};

/** The same server, which can be asked as the gateway asks it, and as one of the clients that it could ask. */
export const allowOwnProcess = (config: UpstreamConfig): UpstreamConfig =>
  describeServer(config).asking ?? config;

/**
 * §18.3: tools that a program lists only for clients that it can ask, where its `isolation` lets it ask none. `upstream` is
 * of what `allowOwnProcess` made of `config`; `tools` is what everybody sees. Never rejects.
 */
export async function checkIsolation(
  config: UpstreamConfig,
  upstream: Upstream,
  tools: FetchedList,
  signal: AbortSignal,
): Promise<Finding | undefined> {
  if (describeServer(config).asking === undefined) return undefined;
  const seen = new Set(tools.items.map(({ name }) => name));
  // Some programs cannot run twice: that is no mistake of the settings.
  const able = await fetchList(upstream, 'tools', ABLE_CALLER, signal).catch(() => undefined);
  const hidden = able?.items.flatMap(({ name }) => (seen.has(name) ? [] : [String(name)])) ?? [];
  if (hidden.length === 0) return undefined;
  return warning(ISOLATION_CHECK, {
    what: `Tools of ${config.name} that no client sees: ${describeNames(hidden)}.`,
    why: 'It lists them only for clients that it can ask something. With "isolation": "shared" all users have one process, which cannot say whom it asks, so it is told that no client can be asked.',
    setting: 'POSTERN_CONFIG',
    remedy: `if they are needed, set "isolation": "user" for ${config.name} in the configuration file.`,
  });
}

const NAMES_CHECK = 'server.names';
/** What all clients that were tried take, with the name of the gateway that some put in front. */
const SAFE_LENGTH = 48;

/**
 * Names that clients would change (docs/clients.md): their models then call what nobody has, or never see it. `tools` is
 * what the server listed.
 */
export function checkNames(file: Setup['file'], config: UpstreamConfig, tools: FetchedList) {
  const prepareList = createPrepareList({
    config,
    hasConnectTool: false,
    naming: createNaming(file),
    policies: { findHidden: () => undefined },
    listGuards: undefined,
    warn: () => {},
  });
  const names = [...prepareList('tools', tools).byName.keys()];
  return [
    warnOfNames(
      config,
      names.filter((one) => one.length > SAFE_LENGTH),
      {
        why: 'Claude Code, OpenCode and Copilot cut longer ones, or refuse them, because they put the name of the gateway in front.',
        remedy: `write "maxNameLength": ${SAFE_LENGTH} at the top of the configuration file, or give ${config.name} a shorter "prefix".`,
        problem: `over ${SAFE_LENGTH} characters`,
      },
    ),
    warnOfNames(
      config,
      names.filter((one) => one.includes('.')),
      {
        why: 'Some clients put another character in the place of a dot, and then call a tool that does not exist.',
        remedy: 'write "names": "strict" at the top of the configuration file.',
        problem: 'with a dot',
      },
    ),
  ];
}

function warnOfNames(
  { name }: UpstreamConfig,
  tools: readonly string[],
  { problem, ...advice }: { problem: string; why: string; remedy: string },
): Finding | undefined {
  if (tools.length === 0) return undefined;
  return warning(NAMES_CHECK, {
    what: `Names of tools of ${name} ${problem}: ${describeNames(tools)}.`,
    ...advice,
    setting: 'POSTERN_CONFIG',
  });
}

const SHOWN_NAMES = 5;

/** The first of several names, and how many more there are. */
function describeNames(names: readonly string[]): string {
  const more = names.length - SHOWN_NAMES;
  return [...names.slice(0, SHOWN_NAMES), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}
