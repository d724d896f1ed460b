// Decisions 10: replicas with different secrets cannot read each other's records, and log-ins fail
// now and then for no reason that anybody can see.
import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { Seal } from './seal.ts';

export interface OtherSecretsDeps {
  readonly clock: Clock;
  readonly log: Log;
}

const EVERY_MS = 60_000;

/** The same seal for records of the store; it warns of those that another secret sealed. */
export function warnOfOtherSecrets(seal: Seal, { clock, log }: OtherSecretsDeps): Seal {
  let saidAt = Number.NEGATIVE_INFINITY;

  function warn(): void {
    if (clock.monotonic() - saidAt < EVERY_MS) return;
    saidAt = clock.monotonic();
    log.warn(
      'OAUTH_STATE_SECRET differs: a record of a log-in was sealed with another secret than those of this replica, so the log-in fails here. Set the same list of secrets on all replicas; to change it, put the new one in front and keep the old one for an hour.',
    );
  }

  return {
    ...seal,
    open(context, sealed) {
      const text = seal.open(context, sealed);
      if (text === undefined && seal.namesOtherSecret(sealed)) warn();
      return text;
    },
  };
}
