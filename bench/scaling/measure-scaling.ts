// npm run bench -- scaling: one process and two, and what Redis takes; docs/scaling.md says what follows.
import { describeMachine } from '../machine.ts';
import type { Options } from '../options.ts';
import { publish, readPublished, type ScalingResults } from '../published.ts';
import { measureDeployments, type Placement } from './measure-deployments.ts';
import { type HotWindowResult, measureHotWindow, measureRedisCosts } from './measure-redis.ts';

/** The most that is allowed, and what a large service may have. */
const HOT_WINDOW_MAXES = [1_000_000_000, 1_000_000];
/** Longer than the window, so that as many entries leave it as come. */
const HOT_WINDOW_SECONDS = 62;

const PLACEMENTS: readonly Placement[] = ['apart', 'shared'];

/** `--only` takes apart, shared, redis and window; what is not measured stays as it was published. */
export async function measureScaling({ plan, only, isQuick, isPublished }: Options): Promise<void> {
  const isAsked = (part: string) => only.length === 0 || only.includes(part);
  const machine = describeMachine();
  let results: Partial<ScalingResults> = { ...readPublished().scaling };
  for (const placement of PLACEMENTS) {
    if (!isAsked(placement)) continue;
    const deployments = await measureDeployments(placement, plan);
    console.table(deployments);
    results = { ...results, [placement]: deployments };
  }
  if (isAsked('redis')) {
    const redis = await measureRedisCosts(plan.seconds);
    console.table(redis);
    results = { ...results, redis };
  }
  if (isAsked('window')) {
    const hotWindows: HotWindowResult[] = [];
    for (const max of HOT_WINDOW_MAXES) {
      hotWindows.push(await measureHotWindow(max, isQuick ? 5 : HOT_WINDOW_SECONDS));
    }
    console.table(hotWindows);
    results = { ...results, hotWindows };
  }
  if (isPublished) publish({ scaling: { ...results, machine } });
}
