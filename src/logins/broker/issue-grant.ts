// §5.11: a login becomes a grant, unless it is over meanwhile; of a user who has too many then, one ends.

import type { Log } from '../../platform/log.ts';
import type { Audit } from '../../telemetry/audit/audit.ts';
import { type Grant, nameUser } from '../grants/grant.ts';
import type { Grants } from '../grants/grants.ts';
import type { EndGrant } from './end-grant.ts';
import type { Logouts } from './logouts.ts';
import type { TellProvider } from './tell-provider.ts';

/** `logoutMark` is that of when the login began. Undefined where all logins of its user, say, were ended since. */
export type IssueGrant = (
  grant: Grant,
  logoutMark: number | undefined,
) => Promise<Grant | undefined>;

export interface IssueGrantDeps {
  readonly grants: Pick<Grants, 'create' | 'listExcess'>;
  readonly logouts: Pick<Logouts, 'isOver'>;
  /** Nobody waits until the provider knows. */
  readonly endGrantSoon: EndGrant;
  readonly tellProviderInTurn: TellProvider;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  readonly log: Log;
}

export function createIssueGrant(deps: IssueGrantDeps): IssueGrant {
  const { grants, logouts, endGrantSoon, tellProviderInTurn, audit, log } = deps;

  /** What becomes of the others is no reason to refuse this login. */
  async function makeRoom({ user, id }: Grant): Promise<void> {
    for (const excess of await grants.listExcess(user, id)) {
      const ended = await endGrantSoon(excess, 'excess');
      if (ended === undefined) continue;
      const { client } = ended;
      const action = {
        event: 'revocation',
        ...nameUser(user),
        client: client.id,
        grant: ended.id,
        action: 'make_room',
      } as const;
      audit?.write(action, { outcome: 'success' });
    }
  }

  /** A store that did not answer may have written it all the same. */
  async function endUnwritten(grant: Grant): Promise<void> {
    const ended = await endGrantSoon(grant.id, 'unfinished').catch(() => undefined);
    if (ended === undefined) await tellProviderInTurn(grant);
  }

  return async function issueGrant(grant, logoutMark) {
    const { id, user, client, sid } = grant;
    try {
      await grants.create(grant);
    } catch (cause) {
      void endUnwritten(grant);
      throw cause;
    }
    try {
      if (await logouts.isOver({ user, clientId: client.id, sid, logoutMark })) {
        await endGrantSoon(id, 'unfinished');
        return undefined;
      }
    } catch (cause) {
      // Its client hears of no tokens: the user must not see a login that nobody has.
      endGrantSoon(id, 'unfinished').catch(() => {});
      throw cause;
    }
    makeRoom(grant).catch((cause: unknown) =>
      log.warn('A user has more logins than the gateway keeps, and none could be ended.', {
        ...nameUser(user),
        cause,
      }),
    );
    return grant;
  };
}
