// §13.6: a client of the configuration file that was removed or changed is out by what each replica knows of the file. What it has
// open ends here, and its grants leave the lists. What is of the client as this replica knows it stays: other replicas load the file
// at other times.
import { type MachineClients, toMachineUser } from '../../auth/machine-clients.ts';
import type { Grants } from '../../grants/grants.ts';
import type { Log } from '../../platform/log.ts';
import type { EndGrant } from './end-grant.ts';

export interface EndOutdatedDeps {
  readonly machineClients: Pick<MachineClients, 'find' | 'onChange'>;
  readonly grants: Pick<Grants, 'listOfUser'>;
  readonly endHere: EndGrant;
  /** `BASE_URL`. */
  readonly baseUrl: string;
  readonly log: Log;
}

export function endOutdatedGrants(deps: EndOutdatedDeps): void {
  const { machineClients, grants, endHere, baseUrl, log } = deps;

  async function endOf(id: string): Promise<void> {
    const mark = machineClients.find(id)?.mark;
    const listed = await grants.listOfUser(toMachineUser(id, baseUrl));
    const outdated = listed.filter(({ clientMark }) => clientMark !== mark);
    for (const grant of outdated) await endHere(grant.id, 'configuration');
  }

  machineClients.onChange((ids) => {
    for (const id of ids) {
      endOf(id).catch((cause: unknown) =>
        log.warn('The tokens of a client that was changed are listed until they expire.', {
          client: id,
          cause,
        }),
      );
    }
  });
}
