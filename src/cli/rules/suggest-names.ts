// What somebody who asks about a tool by a name that nobody has may have meant. No server is asked.
import { builtInCatalog } from '../../catalog/index.ts';
import type { GatewayFile } from '../../config/file/gateway-file.ts';
import { listTools } from '../../mcp/catalog/list-tools.ts';
import { serveOwnCatalog } from '../../mcp/catalog/served-catalog.ts';
import { findNearestName } from '../../platform/nearest-name.ts';
import { parsePattern } from '../../policy/rules/may.ts';
import { createNaming } from '../../upstreams/catalog/prepare-list.ts';
import { findLockPath, readLockFile } from '../setup/lock-file-on-disk.ts';
import type { JudgedItem } from './render-items.ts';

/** A line for each tool that is refused, and whose name is like one that is written down. */
export async function suggestNames(
  judged: readonly JudgedItem[],
  path: string,
  file: GatewayFile,
): Promise<readonly string[]> {
  const refused = judged.flatMap(({ item, decision }) =>
    item.kind === 'tool' && decision.kind === 'denied' ? [item.name] : [],
  );
  if (refused.length === 0) return [];
  const known = await listKnownTools(path, file);
  return refused.flatMap((name) => {
    const nearest = known.includes(name) ? undefined : findNearestName(name, known);
    return nearest === undefined
      ? []
      : [`Did you mean ${nearest}? No rule and no lock names ${name}, and no server was asked.`];
  });
}

/** The gateway's own, those that the lock has, and those that rules name without an asterisk. */
async function listKnownTools(path: string, file: GatewayFile): Promise<readonly string[]> {
  const ownTools = file.builtIn === false ? [] : await listTools(serveOwnCatalog(builtInCatalog));
  const { join } = createNaming(file);
  const lock = readLockFile(findLockPath(path));
  const locked = file.servers.flatMap((server) =>
    [...(lock?.servers.get(server.name)?.tools.keys() ?? [])].map((name) => join(server, name)),
  );
  const ruled = file.rules.flatMap(({ may }) =>
    may
      .map(parsePattern)
      .flatMap(({ kind, glob }) => (kind === 'tool' && !glob.includes('*') ? [glob] : [])),
  );
  return [...ownTools.map(({ name }) => String(name)), ...locked, ...ruled];
}
