import { LOCK_FILE_NAME } from '../../features/upstreams/lock/lock-file.ts';
import type { Setup } from './read-setup.ts';

/** From now on the gateway is to serve what the setup says. */
export type LoadSetup = (setup: Setup) => Promise<void>;

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
