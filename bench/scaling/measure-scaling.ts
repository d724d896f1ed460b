// npm run bench -- scaling: one process and two, and what Redis takes; docs/scaling.md says what follows.
import { describeMachine } from '../machine.ts';
import type { Options } from '../options.ts';
import { publish, readPublished, type ScalingResults, type WaysResults } from '../published.ts';
import { measureCallers } from './measure-callers.ts';
import { measureDeployments } from './measure-deployments.ts';
import { MODE_PARTS, measureModes } from './measure-modes.ts';
import { type HotWindowResult, measureHotWindow, measureRedisCosts } from './measure-redis.ts';

/** The most that is allowed, and what a large service may have. */
const HOT_WINDOW_MAXES = [1_000_000_000, 1_000_000];
/** Longer than the window, so that as many entries leave it as come. */
const HOT_WINDOW_SECONDS = 62;

/** Of what the upper part of the page shows. */
const BASE_PARTS = ['apart', 'shared', 'redis', 'window'];
const BASE_DEPLOYMENTS = ['apart', 'shared'] as const;
/** Longer than a share lives, so that each begins and ends in it. */
const CALLERS_SECONDS = 10;

/**
 * `--only` takes apart, shared, relayed, redis, window, modes, modes-users, modes-workers and callers; what is not measured stays
 * as it was published.
 */
export async function measureScaling({ plan, only, isQuick, isPublished }: Options): Promise<void> {
  const isAsked = (part: string) => only.length === 0 || only.includes(part);
  const machine = describeMachine();
  let results: Partial<ScalingResults> = { ...readPublished().scaling };
  for (const part of BASE_DEPLOYMENTS) {
    if (!isAsked(part)) continue;
    const deployments = await measureDeployments(part, plan);
    console.table(deployments);
    results = { ...results, [part]: deployments };
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
  if (BASE_PARTS.some(isAsked)) results = { ...results, machine };
  if (isAsked('relayed')) {
    const deployments = await measureDeployments('relayed', plan);
    console.table(deployments);
    results = { ...results, relayed: { machine, deployments } };
  }
  const asksModes = MODE_PARTS.some(isAsked);
  if (asksModes || isAsked('callers')) {
    let ways: WaysResults = { modes: [], callers: [], ...results.ways, machine };
    if (asksModes) {
      ways = { ...ways, modes: await measureModes(plan, isAsked, ways.modes) };
      console.table(ways.modes);
    }
    if (isAsked('callers')) {
      ways = { ...ways, callers: await measureCallers(isQuick ? 3 : CALLERS_SECONDS) };
      console.table(ways.callers);
    }
    results = { ...results, ways };
  }
  if (isPublished) publish({ scaling: results });
}
