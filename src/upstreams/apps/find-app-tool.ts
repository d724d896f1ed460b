// §30.2: apps call tools by the names that their server gave them: nobody tells them how clients of several servers see these.
import { type Clock, createTurns } from '../../platform/clock.ts';
import { APPS } from '../../protocol/extensions.ts';
import { JUDGED_AT_ONCE } from '../catalog/list-page.ts';
import { BUILT_IN, type Entry } from '../catalog/prepare-list.ts';
import type { Access, FindAppTool, View, Who } from '../catalog/view.ts';
import { hasApp, isForApps } from './app-tools.ts';

interface FindAppToolDeps {
  readonly view: View;
  readonly access: Access;
  readonly clock: Clock;
}

/** So many tools are looked through at most. */
const MAX_LOOKED_AT = 10_000;

/** Of what the caller sees: a tool that it does not see takes no name from one that it does. */
export function createFindAppTool({ view, access, clock }: FindAppToolDeps): FindAppTool {
  const canMean = (entry: Entry, name: string, who: Who) =>
    entry.server !== BUILT_IN &&
    entry.ownName === name &&
    isForApps(entry.ownItem) &&
    access.mayList(entry, who);

  return async function findAppTool(kind, name, who) {
    const { extensions } = who.upstream.capabilities;
    if (kind !== 'tools' || view.shown === 'own' || extensions?.[APPS] === undefined) {
      return undefined;
    }
    const work = createTurns(clock);
    const entries = (await view.listAtHand('tools', who)).slice(0, MAX_LOOKED_AT);
    await access.prepareFor(who, work);
    const servers = new Set<string>();
    const meant: Entry[] = [];
    for (const [at, entry] of entries.entries()) {
      if (at % JUDGED_AT_ONCE === 0 && work.isOver()) await work.next();
      if (hasApp(entry.ownItem) && access.mayList(entry, who)) servers.add(entry.server);
      if (canMean(entry, name, who)) meant.push(entry);
    }
    const [only, ...others] = meant.filter(({ server }) => servers.has(server));
    return only === undefined || others.length > 0 ? undefined : { kind: 'entry', entry: only };
  };
}
