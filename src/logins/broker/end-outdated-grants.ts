// §13.6: a client of the configuration file that was removed or changed is out by what each replica knows of the file. What it has
// open ends here, also for users whose assertions it brought (§13.7), and its grants leave the lists. What is of the client as this
// replica knows it stays: other replicas load the file at other times.

import { createTurns } from '../../platform/clock.ts';
import { type MachineClients, toMachineUser } from '../auth/machine-clients.ts';
import { type Grant, getClientMark } from '../grants/grant.ts';
import type { Grants } from '../grants/grants.ts';
import type { LoginEnds } from './ends.ts';
import type { BrokerRuntime } from './runtime.ts';

const PAGE = 100;

export function endOutdatedGrants(
  { oauth, baseUrl, clock, log }: BrokerRuntime,
  grants: Pick<Grants, 'list' | 'listOfUser'>,
  { endHere }: Pick<LoginEnds, 'endHere'>,
  machineClients: Pick<MachineClients, 'find' | 'onChange'>,
): void {
  const isOutdated = (grant: Grant): boolean =>
    getClientMark(grant) !== machineClients.find(grant.client.id)?.mark;

  async function endOfItself(id: string): Promise<void> {
    const listed = await grants.listOfUser(toMachineUser(id, baseUrl));
    for (const grant of listed.filter(isOutdated)) await endHere(grant.id, 'configuration');
  }

  async function endOfUsers(ids: readonly string[]): Promise<void> {
    const turns = createTurns(clock);
    const found: string[] = [];
    let page = await grants.list({ from: undefined, limit: PAGE }, { kind: 'all' });
    for (;;) {
      const ofThem = page.items.filter(
        (grant) => grant.assertion?.clientMark !== undefined && ids.includes(grant.client.id),
      );
      found.push(...ofThem.filter(isOutdated).map(({ id }) => id));
      if (page.next === undefined) break;
      if (turns.isOver()) await turns.next();
      page = await grants.list({ from: page.next, limit: PAGE }, { kind: 'all' });
    }
    for (const id of found) await endHere(id, 'configuration');
  }

  machineClients.onChange((ids) => {
    const warn = (cause: unknown) =>
      log.warn('The tokens of clients that were changed are listed until they expire.', {
        clients: ids,
        cause,
      });
    for (const id of ids) endOfItself(id).catch(warn);
    // Clients that bring assertions have grants of users, which only the list of all has.
    if (oauth.idJag.isEnabled && ids.length > 0) endOfUsers(ids).catch(warn);
  });
}
