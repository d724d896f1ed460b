// What a call costs by the number of processes and of calls in a script, from the measured figures. All
// costs are microseconds of CPU.
import type { DeploymentResult } from './measure-deployments.ts';
import type { RedisCostRow, RedisPart } from './measure-redis.ts';

/** `fixed` once for a turn or a script, `each` for every call in it. */
export interface BatchCost {
  readonly fixed: number;
  readonly each: number;
}

/** Of one call, where so many share what is fixed. */
export const costOf = ({ fixed, each }: BatchCost, batch: number): number => fixed / batch + each;

export const scaleCost = ({ fixed, each }: BatchCost, factor: number): BatchCost => ({
  fixed: fixed * factor,
  each: each * factor,
});

/** How much of a core should be in use at most, so that latency stays low when load varies. */
export const PLANNED_SHARE = 0.7;

/** What the figures say of Redis for one kind of script. */
export const fitRedis = (rows: readonly RedisCostRow[], part: RedisPart): BatchCost =>
  fitBatchCost(
    rows
      .filter((row) => row.part === part)
      .map(({ batch, cpuMicroseconds }) => ({ batch, cost: cpuMicroseconds })),
  );

export const fitGateway = (apart: readonly DeploymentResult[]): BatchCost =>
  fitBatchCost(apart.map(({ batch, gateway }) => ({ batch, cost: gateway })));

interface Point {
  readonly batch: number;
  readonly cost: number;
}

/** Least squares of cost = fixed / batch + each, each point weighed by its relative error. */
export function fitBatchCost(points: readonly Point[]): BatchCost {
  let [w, x, y, xx, xy] = [0, 0, 0, 0, 0];
  for (const { batch, cost } of points) {
    const weight = 1 / cost ** 2;
    const share = 1 / batch;
    w += weight;
    x += weight * share;
    y += weight * cost;
    xx += weight * share * share;
    xy += weight * share * cost;
  }
  const fixed = Math.max(0, (w * xy - x * y) / (w * xx - x * x));
  return { fixed, each: (y - fixed * x) / w };
}

export interface ClusterCosts {
  readonly address: BatchCost;
  readonly session: BatchCost;
  readonly global: BatchCost;
}

/**
 * Of the node that holds the window of all callers, for each call of the whole service: that window, and
 * its share of the addresses and sessions, which lie in slots of their own and so cannot share a script.
 */
export const costOfBusiestNode = (
  { address, session, global }: ClusterCosts,
  primaries: number,
  batch: number,
): number => costOf(global, batch) + (costOf(address, 1) + costOf(session, 1)) / primaries;

/** Calls per second that use `share` of a core. */
export const capacityOf = (costMicroseconds: number, share = PLANNED_SHARE): number =>
  (share * 1e6) / costMicroseconds;
