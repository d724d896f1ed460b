// §18.3: what servers log outside of calls, for the client's session that it belongs to.
import type { Clock } from '../../../core/clock.ts';
import { isObject, type JsonObject } from '../../../core/json.ts';
import { createPassWhenKnown } from '../../../core/pass-when-known.ts';
import { createTurns } from '../../../core/turns.ts';
import { ALL_KINDS } from '../../../protocol/list-kinds.ts';
import type { Access } from './access.ts';
import { JUDGED_AT_ONCE } from './list-page.ts';
import type { Plan } from './plan.ts';
import type { Server } from './server.ts';
import type { View, Who } from './view.ts';

export interface LogDeps {
  readonly view: View;
  readonly access: Access;
  readonly clock: Clock;
  getPlan(): Plan;
}

/** Only servers over streamable HTTP have a stream of the client's own session, and in the session era only. */
export function mayTellOfLogs({ upstream, lists }: Server, who: Who): boolean {
  const { config } = upstream;
  if (who.upstream.sessionId === undefined) return false;
  if (config.kind !== 'http' || config.transport !== 'streamable-http') return false;
  const description = lists.peekDescription(who.upstream);
  if (description === undefined) return true;
  return description.era === 'session' && isObject(description.capabilities.logging);
}

interface Sight {
  /** By whose rules it was judged. */
  readonly plan: Plan;
  readonly isVisible: boolean;
}

/** Whoever may see nothing of a server, by the rules or because the lock hides it, hears nothing of it. */
export function createPassLogs(
  deps: LogDeps,
  server: Server,
  who: Who,
  pass: (params: JsonObject) => void,
): (params: JsonObject) => void {
  const { view, clock, getPlan } = deps;
  const isServed = () => view.findServer(server.name) === server;
  const passIfVisible = createPassWhenKnown<JsonObject, Sight>({
    clock,
    async learn() {
      const plan = getPlan();
      return { plan, isVisible: await maySeeAny(deps, server, who) };
    },
    holds: ({ plan }) => plan === getPlan(),
    pass(params, { isVisible }) {
      if (isVisible && isServed()) pass(params);
    },
  });

  return function passLog(params) {
    if (!isServed()) return;
    if (getPlan().policies.allowAll) pass(params);
    else passIfVisible(params);
  };
}

/** As far as it is known without asking the server. */
async function maySeeAny(
  { view, access, clock }: LogDeps,
  { name }: Server,
  who: Who,
): Promise<boolean> {
  const work = createTurns(clock);
  await access.prepareFor(who, work);
  for (const kind of ALL_KINDS) {
    const entries = await view.listAtHand(kind, who, undefined);
    for (const [index, entry] of entries.entries()) {
      if (index % JUDGED_AT_ONCE === 0 && work.isOver()) await work.next();
      if (entry.server === name && access.mayList(entry, who)) return true;
    }
  }
  return false;
}
