// The seal for what a login leaves in the store.
import type { Clock } from '../clock.ts';
import type { StateSecret } from '../config/groups/state-secret.ts';
import type { Log } from '../log.ts';
import { createWarnThrottle } from '../log-throttle.ts';
import { createSeal, type Seal } from './seal.ts';
import { loadOrCreateSecretFile } from './secret-file.ts';

/** Undefined where a login leaves nothing in the store. @throws DataDirError */
export async function createLoginSeal(secret: StateSecret | undefined): Promise<Seal | undefined> {
  if (secret === undefined) return undefined;
  return createSeal(
    secret.kind === 'given' ? secret.secrets : [await loadOrCreateSecretFile(secret.dataDir)],
  );
}

export interface WarningSealDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The first secret seals, and any opens. While replicas restart one after the other, all have to know
 * the new secret before one of them seals with it; what they keep lasts for up to a day.
 */
export const HOW_TO_CHANGE_SECRET =
  'To change the secret, restart all with old,new; then all with new,old; and a day later with new alone.';

/**
 * The same seal, which warns of records that another secret sealed: replicas with different secrets
 * cannot read each other's records, and logins fail now and then for no reason that anybody can see.
 */
export function warnOfForeignSecrets(seal: Seal, { clock, log }: WarningSealDeps): Seal {
  const warn = createWarnThrottle(clock, () =>
    log.warn(
      `OAUTH_STATE_SECRET differs: a login was started with a secret that this replica does not have, so it fails here. Set the same list of secrets on all replicas. ${HOW_TO_CHANGE_SECRET}`,
    ),
  );

  return {
    ...seal,
    open(context, sealed) {
      const text = seal.open(context, sealed);
      if (text === undefined && seal.namesForeignSecret(sealed)) warn();
      return text;
    },
  };
}
