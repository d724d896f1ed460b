// §5.11: a login ends, whoever says so: here at once, and at the provider as far as that can be told.
import type { Grant } from '../../grants/grant.ts';
import type { Grants } from '../../grants/grants.ts';
import type { Log } from '../../platform/log.ts';
import { describeLogin } from '../provider/issued-tokens.ts';
import type { Logouts } from './logouts.ts';
import type { TellProvider } from './tell-provider.ts';

/**
 * By whom, or what, a login ends. `provider`: it sent a logout token. `renewal`: the provider, or a LOGIN_ALLOWED setting, no
 * longer lets the user in. `reuse`: a code or a refresh token came a second time. `configuration`: the client is another in the
 * configuration file now. `excess`: its user has too many. `unfinished`: no client got its tokens.
 */
export type EndedBy =
  | 'client'
  | 'user'
  | 'operator'
  | 'provider'
  | 'renewal'
  | 'reuse'
  | 'configuration'
  | 'excess'
  | 'unfinished';

/** Else the client itself, the provider or the gateway ended it, which says nothing of what somebody wants to go on. */
export const isMeant = (by: EndedBy): boolean => by === 'user' || by === 'operator';

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
      const login = { clientId: client.id, clientName: client.name, user: user.sub };
      log.info('Logged out.', { ...describeLogin(login), grant: id, by });
    }
    return ended;
  };

export interface EndGrantDeps {
  readonly grants: Pick<Grants, 'read'>;
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
    const stored = isMeant(by) ? await grants.read(id) : undefined;
    if (stored !== undefined) await logouts.noteOfOne(stored.grant);
    const ended = await endHere(id, by);
    if (ended !== undefined) await tellProvider(ended);
    return ended;
  };
