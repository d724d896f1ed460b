import type { RulesConfig } from '../policy/rules/rule-config.ts';
import type { ServersConfig } from './config/upstream-config.ts';
import type { Lock } from './lock/lock.ts';

/** What is read together, and served until it is read anew: the configuration file, and the lock beside it. */
export interface Setup {
  readonly file: ServersConfig & RulesConfig;
  /** Undefined where there is none: everything is approved. */
  readonly lock?: Lock | undefined;
  /** The lock file is empty (`{}`): that there is no lock is meant. */
  readonly meansNoLock?: boolean;
}
