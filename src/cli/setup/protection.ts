// Protections of a configuration file: a reload must not lose them unless the file says so.
import { createNaming } from '../../catalog/prepare-list.ts';
import {
  describeProtections,
  findFewerProtections,
  type IsIdle,
  type Protections,
} from '../../control/compare-protections.ts';
import type { Setup } from '../../gateway/configuration/gateway-file.ts';
import { LOCK_FILE_NAME } from '../../lock/lock-file.ts';

export interface Protection {
  readonly hasRules: boolean;
  readonly hasLock: boolean;
  readonly hasGuards: boolean;
  /** Undefined if they were too large for a worker's environment. */
  readonly details?: Protections | undefined;
}

export function describeProtection({ file, lock }: Setup): Protection {
  const { findStart } = createNaming(file);
  const starts = file.servers.map((server) => [server.name, findStart(server)]);
  return {
    hasRules: file.rules.length > 0,
    hasLock: lock !== undefined,
    hasGuards: (file.guards?.length ?? 0) > 0,
    details: describeProtections(file, Object.fromEntries(starts)),
  };
}

/**
 * One sentence for each lost protection, with the way to confirm it. A serving process knows idle patterns; others assume that
 * every pattern protects something.
 */
export function findLosses(
  served: Protection,
  next: Setup,
  isServedIdle: IsIdle = NEVER_IDLE,
  isNextIdle: IsIdle = NEVER_IDLE,
): readonly string[] {
  const { hasRules, hasLock, hasGuards, details } = describeProtection(next);
  const { meansNoRules, allowsFewer } = next.file;
  const isCompared = served.details && details && !allowsFewer;
  // Without the built-in catalogue its tools cannot be called: losing a pattern that matched only these does not matter.
  const isOfServer = (pattern: string) =>
    Object.values(details?.starts ?? {}).some((start) => start !== '' && pattern.startsWith(start));
  const isIdle: IsIdle = (subject, pattern) =>
    (next.file.builtIn || isOfServer(pattern)) && isNextIdle(subject, pattern);
  return [
    served.hasRules &&
      !hasRules &&
      !meansNoRules &&
      'All rules are gone. Restore them. If all users may use everything, write "rules": "everyone" (rules: everyone in YAML).',
    served.hasLock &&
      !hasLock &&
      !next.meansNoLock &&
      `${LOCK_FILE_NAME} is gone. Restore it, or approve the current descriptions: postern lock. To turn the lock off, create a ${LOCK_FILE_NAME} that contains {}.`,
    served.hasGuards &&
      !hasGuards &&
      next.file.meansNoGuards !== true &&
      'All guards are gone. Restore them. To run without guards, write "guards": [].',
    ...(isCompared
      ? findFewerProtections(
          { ...served.details, isIdle: isServedIdle },
          { ...details, isIdle },
        ).map((loss) => `${loss} ${FEWER}`)
      : []),
  ].filter((loss) => loss !== false);
}

const NEVER_IDLE: IsIdle = () => false;
const FEWER =
  'Put it back. If it is to protect less, write "allowFewerProtections": true (allowFewerProtections: true in YAML).';
