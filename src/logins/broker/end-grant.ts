// §5.11: a login ends, whoever says so: here at once, and at the provider as far as that can be told.

import type { Log } from '../../platform/log.ts';
import { type Grant, nameUser } from '../grants/grant.ts';
import type { Grants } from '../grants/grants.ts';
import { describeLogin } from '../request/login-facts.ts';
import { type EndedBy, isMeant, type Logouts } from './logouts.ts';
import type { TellProvider } from './tell-provider.ts';

/** Resolves to what has ended; undefined where another was faster, or there was none. */
export type EndGrant = (id: string, by: EndedBy) => Promise<Grant | undefined>;

export interface EndHereDeps {
  readonly grants: Pick<Grants, 'end'>;
  readonly log: Log;
}

/** Without a word to the provider. Every grant that is ended ends here, with one line of the log. */
export const createEndHere = ({ grants, log }: EndHereDeps): EndGrant =>
  async function endHere(id, by) {
    const ended = await grants.end(id);
    if (ended !== undefined) {
      const { client, user } = ended;
      const login = { clientId: client.id, clientName: client.name, ...nameUser(user) };
      log.info('Logged out.', { ...describeLogin(login), grant: id, by });
    }
    return ended;
  };

export interface EndGrantDeps {
  readonly grants: Pick<Grants, 'find'>;
  readonly logouts: Pick<Logouts, 'noteOfOne'>;
  readonly endHere: EndGrant;
  readonly tellProvider: TellProvider;
}

export const createEndGrant = ({
  grants,
  logouts,
  endHere,
  tellProvider,
}: EndGrantDeps): EndGrant =>
  async function endGrant(id, by) {
    // Before it ends: where the store fails, whoever asked finds it still there.
    const meant = isMeant(by) ? await grants.find(id) : undefined;
    if (meant !== undefined) await logouts.noteOfOne(meant);
    const ended = await endHere(id, by);
    if (ended !== undefined) await tellProvider(ended);
    return ended;
  };
