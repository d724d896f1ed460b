import { LOCK_FILE_NAME } from '../../../upstreams/lock/lock-file.ts';
import type { Setup } from './read-setup.ts';

/**
 * From now on the gateway is to serve what the setup says. `changed`: the files that were changed since the last time;
 * none where somebody asked for it.
 */
export type LoadSetup = (setup: Setup, changed: readonly string[]) => Promise<void>;

/** For the log. */
export const summarizeSetup = ({
  file: { servers, rules, meansNoRules },
  lock,
  meansNoLock,
}: Setup) => ({
  servers: servers.map(({ name }) => name),
  rules: meansNoRules ? 'everyone' : rules.length,
  ...(lock !== undefined && { lock: LOCK_FILE_NAME }),
  ...(meansNoLock && { lock: 'none' }),
});
