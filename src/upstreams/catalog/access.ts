// §18.5: one predicate for list, call, get, read, completion, templates and subscriptions.
import type { Turns } from '../../platform/turns.ts';
import type { Policies } from '../../policy/policy.ts';
import type { Entry } from './entry.ts';
import type { FoundResource, Who } from './view.ts';

export interface Access {
  /** Before many entries are asked about. */
  prepareFor(who: Who, work: Turns): Promise<void>;
  /** What only a scope is missing for is listed. */
  mayList(entry: Entry, who: Who): boolean;
  /** Whether its changes may be told. */
  mayRead(found: FoundResource, who: Who): boolean;
}

export const createAccess = (getPolicies: () => Policies): Access => ({
  prepareFor: (who, work) => getPolicies().prepareFor(who.policy, work),
  mayList: (entry, who) => getPolicies().judge(entry, who.policy, undefined).kind !== 'denied',
  mayRead: (found, who) =>
    getPolicies().judge(toItem(found), who.policy, undefined).kind === 'allowed',
});

export const toItem = ({ server, uri, annotations }: FoundResource) =>
  ({ kind: 'resource', name: uri, server, annotations }) as const;
