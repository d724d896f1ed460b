// The ways of counting, and of reading what Redis keeps, that a fault is run with.
import type { Env } from '../../test/support/gateway/process.ts';

export type Counting = 'log' | 'leased';

export const COUNTINGS: readonly Counting[] = ['log', 'leased'];

/** Modes of a gateway over Redis. A cluster tells nobody what has changed, so there each read queries it. */
export function createCountingEnv(counting: Counting, redisUrl: string): Env {
  if (counting === 'log') return {};
  const isCluster = redisUrl.includes('cluster=true');
  return { RATE_LIMIT_COUNTING: 'leased', ...(!isCluster && { STORE_READS: 'tracked' }) };
}

/** Milliseconds until the other replicas refuse what one replica has ended. */
export const ENDS_HOLD_AFTER_MS: Readonly<Record<Counting, number>> = { log: 0, leased: 200 };

/** The part of a limit that one replica may have taken in advance and not used while another refuses. */
export const SHARE_OF_LIMIT: Readonly<Record<Counting, number>> = { log: 0, leased: 0.05 };
