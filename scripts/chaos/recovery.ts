// How long it takes until the first good answer.
import type { KnowingClient } from './client/knowing-client.ts';
import type { Stage } from './stage.ts';

const ASK_EVERY_MS = 20;
const PATIENCE_MS = 30_000;
/** Between the first good answer and the moment from which no further refusal is true. */
const SETTLE_MS = 500;

/** Milliseconds until a call in a session is answered as it should be; from then on none may be refused. */
export const measureRecovery = (stage: Stage, client: KnowingClient): Promise<number> =>
  measureUntil(stage, client, async () => (await client.ping()) === 'good');

/** Like the above, if only some of the sessions may be affected. */
export const measureWholeRecovery = (stage: Stage, client: KnowingClient): Promise<number> =>
  measureUntil(stage, client, client.checkSessions);

async function measureUntil(
  stage: Stage,
  client: KnowingClient,
  isBack: () => Promise<boolean>,
): Promise<number> {
  const start = performance.now();
  while (!(await isBack())) {
    if (performance.now() - start > PATIENCE_MS) return Number.POSITIVE_INFINITY;
    await stage.pause(ASK_EVERY_MS);
  }
  const recoveryMs = performance.now() - start;
  await stage.pause(SETTLE_MS);
  client.allow();
  return recoveryMs;
}

/** Milliseconds until readiness says so. */
export async function measureReadiness(
  stage: Stage,
  url: string,
  isReady: boolean,
): Promise<number> {
  const start = performance.now();
  while ((await fetch(`${url}/health/ready`)).ok !== isReady) {
    if (performance.now() - start > PATIENCE_MS) return Number.POSITIVE_INFINITY;
    await stage.pause(ASK_EVERY_MS);
  }
  return performance.now() - start;
}
