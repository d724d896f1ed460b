// §30.2: apps call tools by the names that their server gave them: nobody tells them how clients of several servers see these.
import { createTurns } from '../../platform/clock.ts';
import { APPS } from '../../protocol/extensions.ts';
import { JUDGED_AT_ONCE } from '../catalog/list-page.ts';
import { BUILT_IN, type Entry } from '../catalog/prepare-list.ts';
import type { ServedPath } from '../catalog/served-path.ts';
import type { FindAppTool } from '../catalog/view.ts';
import { hasApp, isForApps } from './app-tools.ts';

/** So many tools are looked through at most. */
const MAX_LOOKED_AT = 10_000;

/**
 * The tool that the app of a server means, which is a tool of the same server. So of all servers with an app that the caller
 * sees, only one may have the name, whether the caller may use it or not: what an app says to its own server no other hears.
 */
export function createFindAppTool({ view, access, clock }: ServedPath): FindAppTool {
  return async function findAppTool(kind, name, who) {
    const { extensions } = who.upstream.capabilities;
    if (kind !== 'tools' || view.shown === 'own' || extensions?.[APPS] === undefined) {
      return undefined;
    }
    const isMeant = ({ server, ownName, ownItem }: Entry) =>
      server !== BUILT_IN && ownName === name && isForApps(ownItem);
    // Of nearly all unknown names it is known without a look at rules, or at what servers have not said yet.
    if (!(await view.listAtHand('tools', who)).some(isMeant)) return undefined;
    const entries = (await view.list('tools', who)).entries.slice(0, MAX_LOOKED_AT);
    const meant = entries.filter(isMeant);
    const wanted = new Set(meant.map(({ server }) => server));
    const work = createTurns(clock);
    await access.prepareFor(who, work);
    const servers = new Set<string>();
    for (const [at, entry] of entries.entries()) {
      if (at % JUDGED_AT_ONCE === 0 && work.isOver()) await work.next();
      const { server, ownItem } = entry;
      if (!wanted.has(server) || servers.has(server)) continue;
      if (hasApp(ownItem) && access.mayList(entry, who)) servers.add(server);
    }
    const [only, ...others] = meant.filter(({ server }) => servers.has(server));
    return only === undefined || others.length > 0 || !access.mayList(only, who)
      ? undefined
      : { kind: 'entry', entry: only };
  };
}
