// Spec §4.2, §4.3, decisions 8: liveness and readiness.
import { json, type Reply } from '../../core/message.ts';
import { PACKAGE_VERSION } from '../../core/version.ts';

/** Resolves when the dependency can be used; rejects when it cannot. */
export type ReadinessCheck = () => Promise<void>;

/** Spec §4.2. Needs no dependency. */
export const health = (): Reply =>
  json(200, { status: 'ok', version: PACKAGE_VERSION }, { 'Cache-Control': 'no-store' });

/** Spec §4.3: 503 while a check fails or the service is shutting down. */
export function createReadiness(
  checks: Readonly<Record<string, ReadinessCheck>>,
  isDraining: () => boolean,
): () => Promise<Reply> {
  const named = Object.entries(checks);

  return async function readiness() {
    const outcomes = await Promise.allSettled(named.map(([, check]) => check()));
    const ready = !isDraining() && outcomes.every(({ status }) => status === 'fulfilled');
    const body = {
      status: ready ? 'ready' : 'not_ready',
      version: PACKAGE_VERSION,
      checks: Object.fromEntries(named.map(([name], at) => [name, report(outcomes[at])])),
      ...(isDraining() && { details: 'The service is shutting down.' }),
    };
    return json(ready ? 200 : 503, body, { 'Cache-Control': 'no-store' });
  };
}

// Only the kind of failure: the endpoint is public, addresses belong into the log.
const report = (outcome: PromiseSettledResult<void> | undefined) => ({
  status: outcome?.status === 'fulfilled' ? 'ok' : 'unavailable',
});
