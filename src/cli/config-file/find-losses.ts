// What a configuration file must not lose while it is loaded anew: a file that was cut, or a lock that was removed,
// would give everybody everything.
import { LOCK_FILE_NAME } from '../../features/upstreams/lock/lock-file.ts';
import type { Setup } from './read-setup.ts';

/** A sentence for each: what is gone, and how to say that it is meant. */
export function findLosses(served: Setup, next: Setup): readonly string[] {
  const { rules } = served.file;
  const losesRules = rules.length > 0 && next.file.rules.length === 0 && !next.file.meansNoRules;
  const losesLock = served.lock !== undefined && next.lock === undefined && !next.meansNoLock;
  return [
    ...(losesRules
      ? [
          'All rules are gone. If everybody is to use everything, write "rules": "everyone" (rules: everyone in YAML).',
        ]
      : []),
    ...(losesLock
      ? [
          `${LOCK_FILE_NAME} is gone. If everything is to be approved, put a ${LOCK_FILE_NAME} there that is {}.`,
        ]
      : []),
  ];
}
