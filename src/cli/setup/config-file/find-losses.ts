// What was loaded of the configuration file in a few words, and what it must not lose while it is loaded anew: a file that
// was cut, or a lock that was removed, would give everybody everything.

import type { Setup } from '../../../upstreams/catalog/plan.ts';
import { LOCK_FILE_NAME } from '../../../upstreams/lock/lock-file.ts';

/** For the log. */
export const summarizeSetup = ({
  file: { servers, rules, clients = [], guards = [], meansNoRules },
  lock,
  meansNoLock,
}: Setup) => ({
  servers: servers.map(({ name }) => name),
  rules: meansNoRules ? 'everyone' : rules.length,
  ...(clients.length > 0 && { clients: clients.length }),
  ...(guards.length > 0 && { guards: guards.map(({ name }) => name) }),
  ...(lock !== undefined && { lock: LOCK_FILE_NAME }),
  ...(meansNoLock && { lock: 'none' }),
});

/** What keeps users from something. */
export interface Protection {
  readonly hasRules: boolean;
  readonly hasLock: boolean;
  readonly hasGuards: boolean;
}

export const describeProtection = ({ file, lock }: Setup): Protection => ({
  hasRules: file.rules.length > 0,
  hasLock: lock !== undefined,
  hasGuards: (file.guards?.length ?? 0) > 0,
});

/** A sentence for each: what is gone, and how to say that it is meant. */
export function findLosses(served: Protection, next: Setup): readonly string[] {
  const { hasRules, hasLock, hasGuards } = describeProtection(next);
  return [
    served.hasRules &&
      !hasRules &&
      !next.file.meansNoRules &&
      'All rules are gone. Put them back. If everybody is to use everything, write "rules": "everyone" (rules: everyone in YAML).',
    served.hasLock &&
      !hasLock &&
      !next.meansNoLock &&
      `${LOCK_FILE_NAME} is gone. Put it back, or approve what the servers say now: postern lock. If nothing is to be compared any more, put a ${LOCK_FILE_NAME} there that is {}.`,
    served.hasGuards &&
      !hasGuards &&
      next.file.meansNoGuards !== true &&
      'All guards are gone. Put them back. If nobody is to look at what goes through any more, write "guards": [].',
  ].filter((loss) => loss !== false);
}
